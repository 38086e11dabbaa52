"""Records of benchmarks, their page, and the command that runs all of them."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from importlib import import_module

import pytest
from small_run import segment
from test_benchmarks import model_of

from benchmarks import __main__ as everything
from benchmarks.results import child, record
from benchmarks.results.page import page
from benchmarks.steps import STEPS, TAKES, Step
from headcount.base.errors import UserError

WHERE = {
    "processor": "Zen 9", "gpu": "", "cpus": 4, "threads": 2, "load": 0.1, "python": "3.11.7",
    "torch": "2.13.0", "peers": {"ctranslate2": "4.8.5", "joeynmt": ""}, "date": "2026-11-24",
    "commit": "abc1234", "ceiling": {"fp32": 100.0, "bf16": 200.0},
}  # fmt: skip


PLANS = {"benchmark": "planning", "title": "Plans.", "where": WHERE, "flags": {}}
PLANS["rows"] = [{"plan": "552 jobs", "jobs": 552, "wall": 2.9, "cpu": 9.0, "megabytes": 200.0}]
OURS = {"name": "ours fp32", "precision": "fp32", "units": {"tokens": 8.0}, "flops": 4e9}
TRAINING = {
    "benchmark": "training", "title": "A training.", "where": WHERE,
    "flags": {"clock": "wall", "preset": "base"}, "timed": [OURS | {"seconds": [1.0, 2.0, 1.0]}],
}  # fmt: skip


def test_the_page_tells_what_the_records_say():
    failed = {"benchmark": "decoding", "title": "decoding --x.", "where": WHERE, "failed": "exit 3"}
    text = page([[PLANS, failed, TRAINING]])
    assert "## Zen 9, 4 threads\n" in text
    assert "| peers | ctranslate2 4.8.5; joeynmt is not installed |" in text
    order = ("### Training\n", "### Beam search\n", "### Planning\n")
    assert sorted(order, key=text.index) == list(order)
    assert "**decoding --x.** Not measured: exit 3" in text
    # 8 tokens and 4e9 operations in the median 1 s; 4 of 100 GFLOP/s.
    assert "| ours fp32 | 1.000 | 1.000 | 2.000 | 8 | 4.0 | 4% | 1.00 (1.00–1.00) |" in text
    assert "| 552 jobs | 552 | 2.9 | 9.0 | 200 |" in text


def test_a_record_comes_back_and_another_line_is_named(tmp_path):
    path = tmp_path / "new" / "a.jsonl"
    record.append(None, PLANS)
    record.append(path, PLANS)
    record.append(path, TRAINING)
    assert record.read(path) == [PLANS, TRAINING]
    path.write_text(json.dumps(PLANS) + "\n[1]\n")
    with pytest.raises(UserError, match=r"a\.jsonl:2: expected a record of .*, found '\[1\]'"):
        record.read(path)


def test_a_child_is_measured_and_killed_when_its_time_is_over(tmp_path):
    # More than this process holds, for that counts as well.
    code = "import time; a = b'x' * 700_000_000; time.sleep({}); print('well'); exit(3)"
    ended = child.python(["-c", code.format(0.3)], tmp_path)
    assert (ended.code, ended.last_line) == (3, "well")
    assert ended.megabytes > 700
    assert ended.wall > 0.3 and 0 < ended.cpu < ended.wall - 0.1
    assert child.python(["-c", code.format(60)], tmp_path, limit=0.5).code == -9


@pytest.mark.parametrize("device", STEPS)
def test_every_benchmark_knows_its_flags(device, monkeypatch):
    class Parsed(Exception):
        """The benchmark's own parser took the flags; the work would begin."""

    def parse_args(parser):
        parse(parser)
        raise Parsed

    parse = ArgumentParser.parse_args
    monkeypatch.setattr(ArgumentParser, "parse_args", parse_args)
    given = dict.fromkeys(("data", "model", "source", "results", "peers"), "x")
    given |= {"device": device, "at-most": 3}
    for step in STEPS[device]:
        for each in (step, step.alone()) if step.takes("peers") else (step,):
            words = each.words(given)
            monkeypatch.setattr(sys, "argv", words)
            with pytest.raises(Parsed):
                import_module(words[0]).main()


SMALL = {
    "preset": "tiny", "batch-tokens": 200, "updates": 2, "repeats": 1, "warm-up": 0,
    "sentences": 3, "heads": 2, "peers": "",
}  # fmt: skip


def smaller(step: Step) -> Step:
    """The same on a text of sixty sentences, without a compiler."""
    flags = {name: SMALL.get(name, value) for name, value in step.flags.items()}
    flags |= {"threads": 1} if step.benchmark != "planning" else {}
    flags |= {"experiment": "tiny", "sizes": ("1",)} if step.benchmark == "planning" else {}
    flags |= {"peers": ""} if step.takes("peers") else {}
    flags |= {"sentences": 3} if "model" in TAKES[step.benchmark] else {}
    return replace(step, flags={k: v for k, v in flags.items() if k != "compile"})


@pytest.mark.slow
def test_all_that_is_measured_on_a_gpu_small_and_on_a_cpu(tmp_path, monkeypatch, capsys):
    bpe = segment(tmp_path / "text")
    model = model_of(bpe, tmp_path / "model")
    alike = {step.benchmark: step for step in map(smaller, STEPS["cuda"])}  # one of each
    del alike["memory"]  # its dozen processes take a minute
    steps = [*alike.values(), Step("importance", 1, {"repeats": "none"})]
    monkeypatch.setitem(STEPS, "cpu", tuple(steps))
    out = tmp_path / "speed/here.jsonl"
    source = bpe / "dev.src"
    words = ["--device", "cpu", "--data", bpe, "--model", model, "--source", source]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *map(str, words), "--results", str(out)])
    everything.main()
    told = capsys.readouterr().out
    found = record.read(out)
    kinds = [each["benchmark"] for each in found]
    # The last step fails with peers and without.
    assert kinds == [*(step.benchmark for step in steps), "importance"], told
    assert [each["benchmark"] for each in found if "failed" in each] == ["importance"] * 2
    assert "invalid int value: 'none'" in found[-1]["failed"]
    text = (tmp_path / "speed.md").read_text()
    assert "### Training\n" in text and "Not measured: exit code 2" in text
