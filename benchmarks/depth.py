"""How many calls lie between a command and the line that multiplies a head's output.

A tiny training with random heads masked and a tiny masking run through the scripts' own `main`.
Whenever a multiplier reaches `MultiHeadAttention.merge`, the stack is read: functions of this
project alone, from `main` on; those of a worker thread follow those that wait for it. The longest
chain of each command is printed, and how many calls it has.
"""

import contextlib
import io
import runpy
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from unittest import mock

import torch

from headcount.base import command
from headcount.model import machine
from headcount.model.attention import MultiHeadAttention

ROOT = Path(__file__).resolve().parents[1]
Chain = tuple[str, ...]  # functions, `main` first, each with the file that it stands in

# Functions by these names are loops within their own function, and no call.
_COMPREHENSIONS = {f"<{name}>" for name in ("listcomp", "setcomp", "dictcomp", "genexpr")}
_CORPUS = "--corpus tiny --seed 1 --train-pairs 40 --dev-pairs 8 --test-pairs 8"
_TEXT = "--raw {folder}/manifest.json --src-lang en --tgt-lang art --split {split}"
_TEXT += " --out-src {folder}/{split}.src --out-tgt {folder}/{split}.tgt"
_TEXT += " --counts {folder}/{split}.json"
_BPE = "--train-src {folder}/train.src --train-tgt {folder}/train.tgt"
_BPE += " --dev-src {folder}/dev.src --dev-tgt {folder}/dev.tgt"
_BPE += " --src-lang en --tgt-lang art --pretokenised --merges 40 --out-folder {folder}/bpe"
_MODEL = "--preset tiny --encoder-layers 1 --decoder-layers 1 --heads 2 --d-model 8 --d-ff 8"
_TRAIN = '--bpe {folder}/bpe --run {{"method":"random","heads":1}} --seed 1'
_TRAIN += " --out {folder}/run --state {folder}/state"
_TRAIN += f" {_MODEL} --updates 2 --warmup-updates 1 --dev-interval 2 --device cpu"
_IMPORTANCE = "--model {folder}/run/model --bpe {folder}/bpe --out {folder}/own.csv --device cpu"
_MASKING = "--model {folder}/run/model --bpe {folder}/bpe --text {folder}"
_MASKING += (
    ' --own {folder}/own.csv --seed 1 --test-sets ["dev"] --sentences 2 --groups 2 --draws 0'
)
_MASKING += " --beam 2 --max-length-extra 2 --device cpu --out {folder}/masking.csv"


def chains(folder: Path) -> dict[str, Chain]:
    """The longest chain of `train` and of `masking`; all that they read and write is in `folder`.

    What the commands print is kept back.
    """
    quiet = io.StringIO()
    with _set_up_once(), contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        run_main("synthetic", f"{_CORPUS} --out {{folder}}/manifest.json", folder)
        for split in ("dev", "train"):
            run_main("text", _TEXT.replace("{split}", split), folder)
        run_main("bpe", _BPE, folder)
        training = _longest_chain(lambda: run_main("train", _TRAIN, folder))
        run_main("importance", _IMPORTANCE, folder)
        masking = _longest_chain(lambda: run_main("masking", _MASKING, folder))
    return {"train": training, "masking": masking}


def run_main(name: str, flags: str, folder: Path) -> None:
    """Run a script with these flags, `{folder}` filled in."""
    script = ROOT / "scripts" / f"{name}.py"
    words = [word.format(folder=folder) for word in flags.split()]
    with mock.patch.object(sys, "argv", [str(script), *words]):
        runpy.run_path(str(script), run_name="__main__")


def shown(name: str, chain: Chain) -> str:
    """A chain in lines, under its script and the number of its calls; `main` is not one."""
    lines = [f"scripts/{name}.py: {len(chain) - 1} calls from main"]
    return "\n".join([*lines, *(f"{number:4}  {each}" for number, each in enumerate(chain))])


def main() -> None:
    """Run both commands and print their chains."""
    command.parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = chains(Path(folder))
    print("\n\n".join(shown(name, chain) for name, chain in found.items()))


def _longest_chain(work: Callable[[], object]) -> Chain:
    """The longest of the chains by which `work` multiplies heads."""
    found: set[Chain] = set()
    merge = MultiHeadAttention.merge

    def watched(module, context, multiplier):
        if multiplier is not None:
            found.add((*_functions(sys._getframe(1)), _name(merge.__code__)))
        return merge(module, context, multiplier)

    with mock.patch.object(MultiHeadAttention, "merge", watched):
        work()
    return max(found, key=lambda chain: (len(chain), chain))


def _functions(frame: FrameType) -> Sequence[str]:
    """The project's functions that are at work, from `main` to the one of this frame."""
    found = list(_own(frame))
    if threading.current_thread() is not threading.main_thread():
        found += _own(sys._current_frames()[threading.main_thread().ident])
    return found[::-1]


def _own(frame: FrameType | None) -> Iterator[str]:
    """The project's functions from this frame outwards, as far as the `main` of a script."""
    while frame is not None:
        code = frame.f_code
        path = Path(code.co_filename)
        inside = path.is_relative_to(ROOT / "src") or path.is_relative_to(ROOT / "scripts")
        if inside and code.co_name not in _COMPREHENSIONS:
            yield _name(code)
            if code.co_name == "main":
                return
        frame = frame.f_back


def _name(code) -> str:
    return f"{code.co_qualname}, {Path(code.co_filename).relative_to(ROOT)}"


@contextlib.contextmanager
def _set_up_once() -> Iterator[None]:
    """Context in which several scripts run in this process, which chooses its threads once."""
    before = torch.get_num_threads()
    try:
        with mock.patch.object(machine, "use_threads", torch.set_num_threads):
            yield
    finally:
        torch.set_num_threads(before)


if __name__ == "__main__":
    command.run(main)
