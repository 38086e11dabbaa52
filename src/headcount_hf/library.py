"""Pretrained models in a Python program."""

import os
import tempfile
from pathlib import Path

from headcount.base.files import check_apart
from headcount.library.model import Model, load, origin_of
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.families import Codes
from headcount_hf.pretrained.imports import imported_files, write_imported
from headcount_hf.pretrained.segment import segment_pretrained


def import_pretrained(
    folder: str | Path,
    src_lang: str,
    tgt_lang: str,
    out: str | Path,
    codes: Codes = (None, None),
    device: str = "auto",
) -> Model:
    """Write a model of Hugging Face's library as one of ours, with its subwords, and load it.

    `codes`: the model's codes of both languages, where they are not their names. Raises UserError
    for a model that ours cannot express, and for damaged or missing files.
    """
    theirs, no_text = Path(folder), Path(os.devnull)
    check_apart(Path(out), [theirs])
    with tempfile.TemporaryDirectory() as work:
        pieces, model = Path(work, "pieces"), Path(work, "model")
        both = (no_text, no_text), (no_text, no_text)
        segment_pretrained(theirs, (src_lang, tgt_lang), *both, pieces, codes)
        write_imported(theirs, PairFolder(pieces), model, origin_of(imported_files(theirs)))
        load(model, pieces, "cpu").save(out)
    return load(out, device=device)
