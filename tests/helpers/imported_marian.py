"""A small imported Marian, with its text and pieces."""

from pathlib import Path

from small_marian import write_marian
from small_run import segment

from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.imports import write_imported
from headcount_hf.pretrained.segment import segment_pretrained


def import_marian(root: Path) -> Path:
    """Write an OPUS-MT folder in opus, its model in model, its pieces in bpe, text in text."""
    segment(root / "text")
    train, dev = ([root / "text" / f"{s}.{e}" for e in ("src", "tgt")] for s in ("train", "dev"))
    write_marian(root / "opus", tuple(train))
    segment_pretrained(root / "opus", ("en", "art"), tuple(train), tuple(dev), root / "bpe")
    write_imported(root / "opus", PairFolder(root / "bpe"), root / "model", {})
    return root
