"""Every family with languages and tokenizers of its own: in, pruned, and out again."""

import re

import pytest
import torch
import transformers
from small_tokenizers import LINES, RAW, write_small, write_text

import headcount
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import PAD
from headcount.deployment.export import Deployed
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.export import check_export, export_model
from headcount_hf.pretrained.imports import their_words

pytestmark = pytest.mark.slow

SEARCH = DecodeSettings(beam=3, length_penalty=0.0, max_length_factor=3.0, max_length_extra=10)
KNOWN = LINES[:3]
"""Lines that a model learns to translate into one another, so that its translations end."""


def learn_by_heart(small, pair) -> None:
    """Train the library's model, as its makers would, and save it again."""
    src, tgt = pair.segmenters()
    rows = [torch.tensor(side) for side in their_words(small.folder, pair)]
    text = ParallelText([*map(src.encode, KNOWN)], [*map(tgt.encode, KNOWN[::-1])])
    batch = text.batch(range(len(KNOWN)))
    given = {
        "input_ids": rows[0][batch.src],
        "attention_mask": (batch.src != PAD).long(),
        "decoder_input_ids": rows[1][batch.tgt_in],
        "labels": rows[1][batch.tgt_out].masked_fill(batch.tgt_out == PAD, -100),
    }
    trained = [weight for weight in small.model.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(trained, lr=0.002)
    for _ in range(400):
        optimiser.zero_grad()
        loss = small.model(**given).loss
        loss.backward()
        optimiser.step()
        if loss < 0.05:
            break
    small.model.save_pretrained(small.folder)
    (small.folder / "generation_config.json").unlink(missing_ok=True)


LAYOUTS = ("m2m100", "nllb_json", "nllb_spm", "mbart_json", "mbart50_json", "pegasus_json")
LAYOUTS += ("bart_json",)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_folders_own_tokenizer_reads_and_writes_what_we_do(layout, tmp_path):
    if layout.endswith("_spm"):
        pytest.importorskip("google.protobuf")
    text, check = write_text(tmp_path / "train.txt"), tmp_path / "check.txt"
    small = write_small(layout, tmp_path / "theirs", text)
    codes = small.codes
    languages = (small.folder, "en", "de")
    headcount.import_pretrained(*languages, tmp_path / "first", codes)
    learn_by_heart(small, PairFolder(tmp_path / "first"))
    headcount.import_pretrained(*languages, tmp_path / "ours", codes)
    check.write_text("\n".join([*KNOWN, RAW[0]]) + "\n", encoding="utf-8")
    what = Deployed.open(ModelFolder(tmp_path / "ours"), PairFolder(tmp_path / "ours"))

    def compare(folder):
        return check_export(what, folder, check, SEARCH)

    where = (small.folder, tmp_path / "out", {}, compare)
    assert "translations are the same" in export_model(what, "huggingface", *where)
    # A prefix of the target is given to CTranslate2, too.
    check.write_text("\n".join(KNOWN) + "\n", encoding="utf-8")
    summary = export_model(what, "ctranslate2", None, tmp_path / "fast", {}, compare)
    assert re.search(r"([23]) of \1 translations are the same", summary)
    named = dict(zip(("src_lang", "tgt_lang"), codes, strict=True)) if codes[0] else {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", **named)
    theirs, tgt = their_words(small.folder, what.pair), what.pair.segmenters()[1]
    for line in KNOWN:
        ids = tgt.encode(line)
        words = [theirs[1][i] for i in ids[len(tgt.prefix) :]]
        said = tokenizer.decode(words, skip_special_tokens=True)
        assert " ".join(said.split()) == tgt.decode(ids) == line
    for exported, expected in zip(
        their_words(tmp_path / "out", what.pair, False), theirs, strict=True
    ):
        assert exported[2:] == expected[2:]
