"""Translation from file to file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from headcount.base.errors import UserError
from headcount.base.files import sha256, write_json, write_text
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids
from headcount.data.text import read_clean
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def translate_file(
    folder: ModelFolder,
    pair: PairFolder,
    source: Path,
    settings: DecodeSettings,
    out: Path,
    facts: Path,
    origin: dict[str, Any],
) -> None:
    """Write one detokenised translation per source line, and facts with their provenance.

    The facts: the SHA-256 of the translations, the search's settings, and counts: sentences, empty
    ones (an empty line stays empty), sources truncated to the longest allowed, translations capped
    at the longest output allowed. Raises UserError naming a line that is longer than the model
    allows.
    """
    folder.check(pair)
    src, tgt = pair.segmenters()
    model = folder.load(settings.device)
    lines = read_clean(source, "none")
    whole = [src.encode(line) for line in lines]
    sources = [src.cut_off(ids, settings.max_source) for ids in whole]
    _check_lengths(source, sources, model.settings.position_table)
    with tqdm(total=len(lines), unit="sentence", disable=None) as bar:
        translations = translate(model, sources, settings, done=bar.update, prefix=tgt.prefix)
    write_text(out, "".join(tgt.decode(translation.ids) + "\n" for translation in translations))
    counts = {
        "sha256": sha256(out),
        "sentences": len(lines),
        "empty": sum(not ids for ids in sources),
        "truncated": sum(len(ids) > settings.max_source for ids in whole),
        "capped": sum(translation.capped for translation in translations),
        "beam": settings.beam,
        "length_penalty": settings.length_penalty,
    }
    write_json(facts, {**counts, "provenance": origin})


def _check_lengths(path: Path, sources: Sequence[Ids], positions: int) -> None:
    """Raise UserError naming the first source that has no room in a table of positions."""
    for number, ids in enumerate(sources, start=1):
        if positions and len(ids) >= positions:
            raise UserError(
                f"{path}:{number}: expected at most {positions - 1} subwords, one less than the "
                f"model has positions, found {len(ids)}; part the sentence, or set "
                f"decode.max_source to {positions - 1}, which cuts it off"
            )
