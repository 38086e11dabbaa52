"""A pretrained model by import and by hooks: the same numbers, and what each way costs.

First, of small models of every family, the largest gap between the two ways. Families that cannot
be imported have a mask beside zero columns, and importance beside differences of the loss. Then a
Marian of OPUS-MT's size through importance and without single heads, each way in a process of its
own. All weights and sentences are random. Needs the packages of the tests.
"""

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.pretrained_gaps import (
    drawn_text,
    gaps_of_hooks,
    gaps_of_import,
    helper,
    in_their_ids,
)
from benchmarks.results.child import peak_bytes
from headcount.base import command
from headcount.base.errors import HeadcountError
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import Ids, ParallelText
from headcount.heads.importance import measure_importance
from headcount.model.machine import use_threads
from headcount.model.transformer import Transformer
from headcount.search.beam_search import translate
from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq

WAYS = ("import", "hooks")
WRITING = "writing"
SIZES = {
    "vocab_size": 58101,
    "d_model": 512,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
    "max_position_embeddings": 512,
    "activation_function": "swish",
    "scale_embedding": True,
    "pad_token_id": 58100,
    "decoder_start_token_id": 58100,
    "eos_token_id": 0,
    "forced_eos_token_id": None,
    "bos_token_id": None,
}
"""OPUS-MT's."""
UNKNOWN, LONGEST = 1, 16
MASKS, SEARCHED, ROWS = 20, 8, 40  # single heads, sentences, rows of one search


def write_large(folder: Path, sentences: int) -> None:
    """A Marian of OPUS-MT's size with random weights, and text in its ids and in ours."""
    theirs = importlib.import_module("transformers")
    torch.manual_seed(1)
    model = theirs.MarianMTModel(theirs.MarianConfig(**SIZES))
    helper("small_pretrained").random_weights(model).save_pretrained(folder)
    ours = helper("small_pretrained").import_small(folder, UNKNOWN)
    text = drawn_text(sentences, SIZES["vocab_size"] - 2, 32)
    other = in_their_ids(text, ours, HookedSeq2Seq(model))
    found = {"rows": ours.tgt_rows, "import": [text.src, text.tgt], "hooks": [other.src, other.tgt]}
    (folder / "text.json").write_text(json.dumps(found))


def measure(way: str, folder: Path, tokens: int) -> Iterator[tuple[str, Any]]:
    """Processor time of each step, memory, and what was found, of one way of the large model."""
    kept = json.loads((folder / "text.json").read_text())
    yield "before, MB", peak_bytes() / 1e6
    start = time.process_time()
    model, text = _loaded(way, folder, *kept[way])
    yield "loading, s", time.process_time() - start
    start = time.process_time()
    settings = ImportanceSettings(batch_tokens=tokens)
    importance = measure_importance(model, text, settings)
    yield "importance, s", time.process_time() - start
    yield "importance, MB", peak_bytes() / 1e6
    yield "importance", importance.tolist()
    rows = torch.ones(MASKS, model.grid.size)
    rows[torch.arange(MASKS), torch.arange(MASKS) * model.grid.size // MASKS] = 0
    start = time.process_time()
    search = _by_ours if way == "import" else _by_theirs
    found = search(model, text.src[:SEARCHED], rows.repeat_interleave(SEARCHED, 0), kept["rows"])
    yield "single heads, s", time.process_time() - start
    yield "single heads, MB", peak_bytes() / 1e6
    yield "translations", found


def _loaded(
    way: str, folder: Path, src: list[Ids], tgt: list[Ids]
) -> tuple[Transformer | HookedSeq2Seq, ParallelText]:
    if way == "import":
        imported = helper("small_pretrained").import_small(folder, UNKNOWN)
        return imported.model, ParallelText(src, tgt)
    marian = importlib.import_module("transformers").MarianMTModel
    hooked = HookedSeq2Seq(marian.from_pretrained(folder, local_files_only=True).eval())
    return hooked, hooked.text(src, tgt)


def _by_ours(model: Transformer, sources: list[Ids], rows: Tensor, theirs: list[int]) -> list[Ids]:
    """Translations under every row of masks, in their ids, by our search."""
    settings = DecodeSettings(
        beam=4, length_penalty=0, max_length_factor=0.01, max_length_extra=LONGEST
    )
    found = translate(model, sources * MASKS, settings, rows)
    return [[theirs[i] for i in each.ids] for each in found]


def _by_theirs(model: HookedSeq2Seq, sources: list[Ids], rows: Tensor, _: object) -> list[Ids]:
    """The same by the library's search, some rows at a time."""
    pad, end = SIZES["pad_token_id"], SIZES["eos_token_id"]
    options = {
        "num_beams": 4,
        "length_penalty": 0.0,
        "early_stopping": "never",
        "max_new_tokens": LONGEST,
        "do_sample": False,
        "bad_words_ids": [[pad]],
        "logits_processor": [helper("small_pretrained").EndAtLongest(end, LONGEST)],
    }
    found, every = [], sources * MASKS
    for first in range(0, len(every), ROWS):
        part = slice(first, first + ROWS)
        for ids in model.generate(every[part], options, rows[part]).tolist():
            found.append(ids[1 : ids.index(end, 1)])
    return found


def compare(folder: Path, args: argparse.Namespace) -> None:
    """Print what both ways of the large model cost, and the largest difference of their numbers."""
    found = {}
    for way in (WRITING, *WAYS):  # a process counts what the one that started it has held
        line = [sys.executable, "-m", "benchmarks.pretrained", "--way", way, "--folder", folder]
        line += ["--batch-tokens", args.batch_tokens, "--threads", args.threads]
        line += ["--sentences", args.sentences]
        done = subprocess.run(list(map(str, line)), capture_output=True, text=True)
        if done.returncode:
            sys.stderr.write(done.stderr)
            raise HeadcountError(f"{way}: its process ended with exit code {done.returncode}")
        found[way] = json.loads(done.stdout.splitlines()[-1])
    numbers = [name for name in found["hooks"] if name.endswith((", s", ", MB"))]
    rows = [[way, *(f"{found[way][name]:.1f}" for name in numbers)] for way in WAYS]
    _print_table(["", *numbers], rows)
    values = [np.array(found[way]["importance"]) for way in WAYS]
    gap = np.abs(values[0] - values[1]).max() / values[1].max()
    translated = list(zip(*(found[way]["translations"] for way in WAYS), strict=True))
    same = sum(one == other for one, other in translated)
    print(
        f"\nImportance of {len(values[0])} heads on {args.sentences} pairs: largest difference "
        f"{gap:.1e} of the largest. {MASKS} single heads, {SEARCHED} sentences, beam 4: {same} of "
        f"{len(translated)} translations the same, {len({tuple(t[1]) for t in translated})} "
        "different ones."
    )


def _print_table(heads: list[str], rows: list[list[str]]) -> None:
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    print("\n".join("| " + " | ".join(line) + " |" for line in lines))


def print_gaps() -> None:
    """The gaps of every family of small models."""
    columns = ["logits", "loss of a word, nats", "importance / largest"]
    rows: list[list[str]] = []
    ways: list[tuple[str, Callable[[str], list[float]], Sequence[str]]] = [
        ("import and hooks", gaps_of_import, helper("small_pretrained").KINDS),
        ("mask and zero columns", gaps_of_hooks, helper("small_hooked").HOOKED),
    ]
    for between, gaps, kinds in ways:
        rows += [[kind, between, *(f"{gap:.1e}" for gap in gaps(kind))] for kind in kinds]
    _print_table(["family", "largest gap between", *columns], rows)


def main() -> None:
    """Print both tables, or measure one way here."""
    args = _flags().parse_args()
    use_threads(args.threads)
    if args.way:
        steps = measure(args.way, args.folder, args.batch_tokens)
        steps = write_large(args.folder, args.sentences) if args.way == WRITING else dict(steps)
        print(json.dumps(steps))
        return
    print_gaps()
    print()
    if args.sentences:
        with tempfile.TemporaryDirectory() as folder:
            compare(Path(folder), args)


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    words = "pairs that importance of the large model is measured on; 0: the small ones alone"
    parser.add_argument("--sentences", type=int, default=100, help=words)
    parser.add_argument("--batch-tokens", type=int, default=1024, help="budget of one batch")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument(
        "--way", choices=(WRITING, *WAYS), help="with --folder: measure here, print JSON"
    )
    parser.add_argument("--folder", type=Path, help="with --way: of the large model and its text")
    return parser


if __name__ == "__main__":
    command.run(main)
