"""Every family with languages and tokenizers of its own: in, pruned, and out again."""

import pytest
import safetensors.torch
import torch
from small_pretrained import EndAtLongest
from small_tokenizers import LINES, write_small, write_text

import headcount
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import ParallelText, collate
from headcount.data.vocabulary import EOS, PAD
from headcount.deployment.ctranslate2_export import POSITIONS
from headcount.deployment.huggingface_engine import HuggingFaceEngine
from headcount.model.loss import token_losses
from headcount.pretrained.imports import their_words
from headcount.search.beam_search import translate
from headcount.store.pair_folder import PairFolder

pytestmark = pytest.mark.slow

SEARCH = DecodeSettings(beam=3, length_penalty=0.0, max_length_factor=0.01, max_length_extra=10)
SILENT = ["enc_self.0.1", "enc_self.2.0", "dec_self.1.3", *(f"dec_enc.0.{n}" for n in range(4))]


@pytest.mark.parametrize(
    "layout",
    ["marian", "m2m100", "nllb_json", "mbart_json", "mbart50_spm", "pegasus_spm", "bart_json"],
)
@torch.no_grad()
def test_in_and_out_again(layout, tmp_path):
    small = write_small(layout, tmp_path / "theirs", write_text(tmp_path / "train.txt"))
    whole = headcount.import_pretrained(small.folder, "en", "de", tmp_path / "ours", small.codes)
    silent = [head for head in SILENT if head in whole.heads]
    model = whole.without(silent)
    model.export(tmp_path / "back", "huggingface", small.folder)
    pair = PairFolder(tmp_path / "ours")
    prefix, rows = pair.prefix(), their_words(small.folder, pair)
    engine = HuggingFaceEngine(tmp_path / "back", rows, prefix, SEARCH, POSITIONS)
    src, tgt = pair.segmenters()
    text = ParallelText(
        [src.encode(line) for line in LINES[:4]], [tgt.encode(line) for line in LINES[5:9]]
    )
    batch = collate(text, range(4))
    found = engine.losses(batch.src, batch.tgt_in, batch.tgt_out)[batch.tgt_out != PAD]
    torch.testing.assert_close(found, token_losses(model.module, batch), atol=3e-5, rtol=0)
    expected = translate(model.module, text.src, SEARCH, prefix=prefix)
    end = engine.tgt[EOS].item()
    for source, translation in zip(text.src, expected, strict=True):
        words = engine.model.generate(
            engine.src[torch.tensor([[*source, EOS]])], decoder_input_ids=engine.begin[None],
            decoder_start_token_id=int(engine.begin[0]),
            num_beams=3, do_sample=False, length_penalty=0.0, early_stopping="never",
            max_length=None, max_new_tokens=10 - len(prefix), forced_eos_token_id=None,
            forced_bos_token_id=None, suppress_tokens=engine.never,
            logits_processor=[EndAtLongest(end, 10)],
        )[0].tolist()  # fmt: skip
        assert [engine.ours[word] for word in words[1 : words.index(end, 1)]] == translation.ids
    whole.export(tmp_path / "all", "huggingface", small.folder)
    mine, theirs = (safetensors.torch.load_file(tmp_path / name / "model.safetensors")
                    for name in ("all", "theirs"))  # fmt: skip
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
