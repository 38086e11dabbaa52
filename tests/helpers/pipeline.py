"""From generated text to a table and a figure, in this folder, by the real scripts.

`python tests/helpers/pipeline.py [SECONDS] [STEP...]`: each runs in a fork of this process, so that
libraries are loaded once. After each step, every file gets the time SECONDS.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from named_runs import run_flag
from script_runner import run_script

import headcount.analysis.build
import headcount.heads.attention_map
import headcount.training.training_run  # noqa: F401
from headcount.base import folders

SIZE = ("--seed", 3, "--train-pairs", 60, "--dev-pairs", 12, "--test-pairs", 12)
LANGUAGES = ("--src-lang", "en", "--tgt-lang", "art")
SHAPE = ("--preset", "tiny", "--encoder-layers", 1, "--decoder-layers", 1, "--heads", 3)
SHAPE += ("--d-model", 24, "--d-ff", 32)
TRAINING = ("--updates", 9, "--batch-tokens", 200, "--warmup-updates", 3, "--dev-interval", 4)
TEXT, BPE = "text/s.en-art", "bpe/s.en-art"
MODEL = ("--model", "run/model", "--bpe", BPE)


def steps() -> list[tuple]:
    """Names of scripts, each with its arguments."""
    split = {
        name: (
            *("--raw", "raw/manifest.json", *LANGUAGES, "--split", name),
            *("--out-src", f"{TEXT}/{name}.src", "--out-tgt", f"{TEXT}/{name}.tgt"),
            *("--counts", f"{TEXT}/{name}.json"),
        )
        for name in ("dev", "test", "train")
    }
    held_out = ("--held-out", f"{TEXT}/dev.src", f"{TEXT}/test.src")
    texts = [
        word
        for name in ("train", "dev")
        for side in ("src", "tgt")
        for word in (f"--{name}-{side}", f"{TEXT}/{name}.{side}")
    ]
    splits = [f"{TEXT}/{split}" for split in ("train", "dev", "test")]
    corpus = ("--counts", *(f"{split}.json" for split in splits))
    corpus += ("--text", *(f"{split}.{side}" for split in splits for side in folders.SIDES))
    corpus += ("--segmented", *(f"{BPE}/{name}" for name in folders.TRAINING))
    out = ("--translations", "out.txt", "--facts", "out.json", "--references", f"{TEXT}/test.tgt")
    one = ("--layer", 0, "--head", 2, "--source", "source.txt", "--out", "attention.json")
    drawn = ("--weights", "attention.json", "--title", "Ein ı, ein İ")
    return [
        ("synthetic", "--corpus", "s", *SIZE, "--out", "raw/manifest.json"),
        ("text", *split["dev"]),
        ("text", *split["test"]),
        ("text", *split["train"], *held_out),
        ("bpe", *texts, *LANGUAGES, "--merges", 60, "--pretokenised", "--out-folder", BPE),
        ("train", "--bpe", BPE, *run_flag("random-1"), "--seed", 2, "--out", "run", "--state")
        + ("state", "--save-seconds", 0, *SHAPE, *TRAINING),
        ("translate", *MODEL, "--source", f"{TEXT}/test.src", "--out", "out.txt")
        + ("--facts", "out.json", "--beam", 2, "--max-length-extra", 2),
        ("bleu", "--pair", "s.en-art", "--run", "random-1", "--seed", 2, "--tests", "test")
        + (*out, "--out", "bleu.json"),
        ("importance", *MODEL, "--sentences", 9, "--out", "heads/importance.csv"),
        ("attention", *MODEL, *one),
        ("attention_map", *drawn, "--out", "map.svg"),
        ("attention_map", *drawn, "--out", "map.pdf"),
        ("analysis", "general", *corpus, "--out", "."),
    ]


def run_aside(name: str, arguments: Sequence[object]) -> int:
    """Exit code of a script in a process of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = run_script(name, arguments)
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def use_letters() -> None:
    """Other letters than ASCII's for some of the text's, those of Turkish among them."""
    for path in [*Path(TEXT).glob("*.src"), *Path(TEXT).glob("*.tgt")]:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.translate(str.maketrans("aiI", "äıİ")), encoding="utf-8")


def main() -> None:
    """Run all steps, or those that are named, until one fails."""
    only = {word for word in sys.argv[1:] if not word.isdigit()}
    times = [int(word) for word in sys.argv[1:] if word.isdigit()]
    if not only:
        Path("source.txt").write_text("İstanbul ığdır STRASSE ß 3,5 kät\n", encoding="utf-8")
    for name, *arguments in steps():
        if only and name not in only:
            continue
        if name == "bpe":
            use_letters()
        if code := run_aside(name, arguments):
            sys.exit(code)
        for path in Path().rglob("*") if times else []:
            os.utime(path, (times[0], times[0]))


if __name__ == "__main__":
    main()
