"""Translation from file to file."""

from pathlib import Path
from typing import Any

from tqdm import tqdm

from headcount.base.errors import UserError
from headcount.base.files import read_json, write_json, write_text
from headcount.base.settings.decode import DecodeSettings
from headcount.data.bpe import load_segmenters
from headcount.data.lines import LineTally, read_lines
from headcount.data.text import clean
from headcount.runs.checkpoint import load_model
from headcount.runs.decode import translate
from headcount.runs.machine import pick_device
from headcount.runs.training_run import vocabulary_checksums


def translate_file(
    model_folder: Path,
    bpe: Path,
    source: Path,
    settings: DecodeSettings,
    out: Path,
    facts: Path,
    origin: dict[str, Any],
) -> None:
    """Write one detokenised translation per source line, and counts with their provenance.

    The counts: sentences, empty ones (an empty line stays empty), sources truncated to the longest
    allowed, translations capped at the longest output allowed; beside them the search's settings.
    """
    src, tgt = load_segmenters(bpe)
    check_vocabularies(model_folder, bpe)
    model = load_model(model_folder).to(pick_device(settings.device))
    lines = read_source(source)
    whole = [src.encode(line) for line in lines]
    sources = [ids[: settings.max_source] for ids in whole]
    with tqdm(total=len(lines), unit="sentence", disable=None) as bar:
        translations = translate(model, sources, settings, done=bar.update)
    write_text(out, "".join(tgt.decode(translation.ids) + "\n" for translation in translations))
    counts = {
        "sentences": len(lines),
        "empty": sum(not ids for ids in sources),
        "truncated": sum(len(ids) > settings.max_source for ids in whole),
        "capped": sum(translation.capped for translation in translations),
        "beam": settings.beam,
        "length_penalty": settings.length_penalty,
    }
    write_json(facts, {**counts, "provenance": origin})


def read_source(path: Path) -> list[str]:
    """Lines of a text to translate, by the line rule of raw text, so that it may be anyone's."""
    tally = LineTally()
    return [clean(line, "none", tally) for line in read_lines(path, None, tally)]


def check_vocabularies(model_folder: Path, bpe: Path) -> None:
    """Raise UserError if the model was trained on other vocabularies than those in `bpe`."""
    trained = read_json(model_folder / "model.json")["vocabularies"]
    for side, found in vocabulary_checksums(bpe).items():
        if trained[side] != found:
            raise UserError(
                f"{bpe / side}.vocab: not the vocabulary that the model in {model_folder} was "
                "trained on; name the folder it was trained on, or train it again"
            )
