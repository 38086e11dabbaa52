"""From a file of text to a file of translations."""

import json

import pytest
import torch
from small_run import MODEL, segment

from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.vocabulary import EOS, Vocabulary
from headcount.model.transformer import Transformer
from headcount.runs.checkpoint import save_model
from headcount.runs.training_run import vocabulary_checksums
from headcount.runs.translation import translate_file

SETTINGS = DecodeSettings(beam=2, max_length_factor=1.0, max_length_extra=3, max_source=40)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """An untrained model and the segmented text it belongs to."""
    folder = tmp_path_factory.mktemp("translation")
    bpe = segment(folder)
    size = len(Vocabulary.load(bpe / "src.vocab"))
    torch.manual_seed(1)
    model = Transformer(MODEL, size, size, joint=True)
    with torch.no_grad():
        model.tgt_embedding.weight[EOS] = 0.0  # some word is always likelier than the end
    facts = {"vocabularies": vocabulary_checksums(bpe)}
    save_model(folder / "model", model, dict(model.named_parameters()), facts)
    return folder / "model", bpe


def translate(folders, tmp_path, text: bytes) -> tuple[list[str], dict]:
    source, out, facts = (tmp_path / name for name in ("source", "out", "facts"))
    source.write_bytes(text)
    translate_file(*folders, source, SETTINGS, out, facts, {})
    return out.read_text().split("\n")[:-1], json.loads(facts.read_text())


def test_a_line_for_each_line_and_empty_ones_stay_empty(folders, tmp_path):
    lines, facts = translate(folders, tmp_path, b"the dog sleeps .\n\na cat .\n")
    assert len(lines) == 3 and lines[0] and lines[2] and lines[1] == ""
    assert (facts["sentences"], facts["empty"], facts["beam"]) == (3, 1, 2)


def test_f19_text_from_elsewhere_is_read_by_the_line_rule(folders, tmp_path):
    plain, _ = translate(folders, tmp_path, b"the dog sleeps .\na cat .\n")
    other, _ = translate(folders, tmp_path, "\ufeffthe\u00a0dog  sleeps .\r\na cat .".encode())
    assert other == plain and all(plain)


def test_f22_a_long_line_is_cut_and_counted(folders, tmp_path):
    lines, facts = translate(folders, tmp_path, b"the dog sleeps .\n" + b"dog " * 20000 + b"\n")
    assert len(lines) == 2 and facts["truncated"] == 1
    # At most 1.0 · 40 + 3 subwords with EOS, so at most 42 words.
    assert 0 < len(lines[1].split()) <= 42


def test_f33_another_vocabulary_is_refused(folders, tmp_path):
    model, bpe = folders
    other = tmp_path / "bpe"
    other.mkdir()
    for path in bpe.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    vocabulary = Vocabulary.load(bpe / "tgt.vocab")
    Vocabulary(vocabulary.counts[::-1]).save(other / "tgt.vocab")
    (tmp_path / "source").write_text("the dog .\n")
    with pytest.raises(UserError, match=r"tgt\.vocab: not the vocabulary that the model"):
        translate_file(
            model, other, tmp_path / "source", SETTINGS, tmp_path / "out", tmp_path / "facts", {}
        )
    assert not (tmp_path / "out").exists()
