"""BLEU without each head of one model: all masks in one job beside one decode per head.

`--model` is a folder that training wrote. The naive ways: `head by head`, a search of its own for
each mask, in one process, model and sources loaded once; `a job per head`, the project's own
`scripts/translate.py` once for each mask, which is what a loop over a command line does (without
a mask: none of its time depends on it). Before anything is timed, all masks at once must give the
translations of each mask alone.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.data import add_common_flags
from benchmarks.measuring import Bench, Contender, Work
from headcount.ablation.masked_bleu import MaskedInputs, MaskedModel
from headcount.ablation.masking import single_heads
from headcount.base import command
from headcount.base.errors import HeadcountError
from headcount.base.ranking import Heads
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import as_flags
from headcount.data.lines import clean_lines
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

AGREEING = 0.999  # share of translations that must be the same; ties may fall either way
Translations = dict[Heads, list[str]]
Way = Callable[[], Translations]


def nothing(sentences: int) -> None:
    """Progress that nobody is told of."""


def all_at_once(masked: MaskedModel, lines: list[str], sets: list[Heads]) -> Translations:
    """Every mask in one search, as the ablation job does it."""
    return masked.translations(lines, sets, nothing)


def head_by_head(masked: MaskedModel, lines: list[str], sets: list[Heads]) -> Translations:
    """A search for each mask."""
    return {heads: masked.translations(lines, [heads], nothing)[heads] for heads in sets}


def a_job_per_head(
    inputs: MaskedInputs, lines: list[str], sets: list[Heads], settings: DecodeSettings
) -> None:
    """A process for each mask: imports, loading, one search."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "lines.src"
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        out, facts = (Path(folder) / name for name in ("out.txt", "out.json"))
        files = {"model": inputs.model.path, "bpe": inputs.pair.path, "source": source}
        files |= {"out": out, "facts": facts}
        flags = [str(word) for name, path in files.items() for word in (f"--{name}", path)]
        for _ in sets:
            words = [sys.executable, "scripts/translate.py", *flags, *as_flags(settings)]
            subprocess.run(words, check=True, capture_output=True)


def check_agreement(ours: Way, theirs: Way) -> None:
    """Print the share of equal translations. Raises HeadcountError if it is too small."""
    one, other = ours(), theirs()
    pairs = [pair for heads in one for pair in zip(one[heads], other[heads], strict=True)]
    same = sum(a == b for a, b in pairs) / len(pairs)
    print(f"{len(pairs)} translations, {same:.3%} of them the same")
    if same < AGREEING:
        raise HeadcountError(f"expected at least {AGREEING:.1%} the same: this is a bug")


def main() -> None:
    """Check, measure, and print one table."""
    args = _flags().parse_args()
    settings = DecodeSettings(
        beam=args.beam,
        length_penalty=args.length_penalty,
        batch_tokens=args.batch_tokens,
        device=args.device,
        threads=args.threads,
    )
    inputs = MaskedInputs(ModelFolder(args.model), PairFolder(args.data), args.data, settings)
    masked = inputs.load()
    bench = Bench(args)
    lines = list(clean_lines(args.source))[: args.sentences]
    points = single_heads(masked.grid)
    sets = [point.heads for point in points[:: max(1, len(points) // args.heads)]]
    at_once = partial(all_at_once, masked, lines, sets)
    one_by_one = partial(head_by_head, masked, lines, sets)
    check_agreement(at_once, one_by_one)
    work = Work({"sentences": float(len(lines) * len(sets))}, 0.0)
    contenders = [
        Contender("all masks in one job", at_once, work),
        Contender("head by head", one_by_one, work),
    ]
    if args.clock == "wall":  # a child's processor time is not this process's
        jobs = partial(a_job_per_head, inputs, lines, sets, settings)
        contenders.append(Contender("a job per head", jobs, work))
    title = f"Beam {args.beam}, {len(lines)} sentences, {len(sets)} of {len(points)} heads."
    print(bench.measure(contenders, title))


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    add_common_flags(parser)
    parser.add_argument("--model", required=True, type=Path, help="folder of the model")
    parser.add_argument("--source", required=True, type=Path, help="cleaned text to translate")
    parser.add_argument("--sentences", type=int, default=1000, help="of the text, at most")
    parser.add_argument("--heads", type=int, default=12, help="masks, spread over all heads")
    parser.add_argument("--beam", type=int, default=5, help="hypotheses kept per sentence")
    parser.add_argument("--length-penalty", type=float, default=0.6, help="α of the search")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="budget of one batch")
    return parser


if __name__ == "__main__":
    command.run(main)
