"""Links that eflomal predicts: of two directions, between the words of the cleaned text."""

import json
import random
import shutil
import sysconfig

import pytest
from script_runner import run_script

from headcount.data.word_links.silver import COMMAND, merge

STAND_IN = """#!/bin/sh
cp "$2" {folder}/asked.src
cp "$4" {folder}/asked.tgt
sed 's/.*/0-0 1-1/' "$2" > "$6"
sed 's/.*/1-1 2-0/' "$2" > "$8"
exit $(cat {folder}/code)
"""
INSTALLED = shutil.which(COMMAND, path=sysconfig.get_path("scripts")) or shutil.which(COMMAND)


@pytest.fixture
def eflomal(monkeypatch, tmp_path):
    """A command that links every sentence alike; what it was asked is kept."""
    command = tmp_path / COMMAND
    command.write_text(STAND_IN.format(folder=tmp_path))
    command.chmod(0o755)
    (tmp_path / "code").write_text("0")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    return command


def write(folder, split: str, src: list[str], tgt: list[str]) -> None:
    for side, lines in (("src", src), ("tgt", tgt)):
        (folder / f"{split}.{side}").write_text("".join(f"{line}\n" for line in lines))


def run(folder, *more: object) -> int:
    out = folder / "test.silver.links"
    return run_script("silver_links", ["--text", folder, "--test", "test", "--out", out, *more])


def test_links_of_both_directions_are_sure_and_of_one_possible():
    assert merge("0-0 1-2 10-3", "2-2 1-2 0-0") == "0-0 1-2 2p2 10p3"
    assert merge("", "0-1") == "0p1" and merge("", "") == ""


def test_eflomal_reads_words_of_training_and_test_text_alone(eflomal, tmp_path):
    """Five training pairs, at most two: every third. The first of two references is read."""
    write(tmp_path, "train", [f"S{n}, x" for n in range(5)], [f"t{n}" for n in range(5)])
    write(tmp_path, "test", ["a  (dog) .", ""], ["ein „Hund“!\tein Tier", "leer"])
    assert run(tmp_path, "--alignment-silver-pairs", 2) == 0
    assert (tmp_path / "asked.src").read_text() == "S0 x\nS3 x\na dog .\n\n"
    assert (tmp_path / "asked.tgt").read_text() == "t0\nt3\nein Hund\nleer\n"
    assert (tmp_path / "test.silver.links").read_text() == "0p0 1-1 2p0\n" * 2
    about = json.loads((tmp_path / "test.silver.json").read_text())
    counts = {name: about[name] for name in ("sentences", "sure", "possible", "training_pairs")}
    assert counts == {"sentences": 2, "sure": 2, "possible": 4, "training_pairs": 2}
    assert about["provenance"]["settings"]["alignment"]["silver_pairs"] == 2
    assert len(about["provenance"]["inputs"]) == 4


def test_f53_a_missing_or_failing_eflomal_is_told(eflomal, tmp_path, capsys, monkeypatch):
    write(tmp_path, "train", ["a"], ["b"])
    write(tmp_path, "test", ["a"], ["b"])
    (tmp_path / "code").write_text("9")
    assert run(tmp_path) == 3 and "failed with 9" in capsys.readouterr().err
    eflomal.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(tmp_path) == 3
    assert "pip install -e '.[align]'" in capsys.readouterr().err
    assert not (tmp_path / "test.silver.links").exists()


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="eflomal, of the extra `align`, is not installed")
def test_the_real_eflomal_finds_words_that_stand_in_reverse_order(tmp_path):
    """Target words are in capitals, so word n of 4 is linked to word 3 − n. eflomal has no seed."""
    generator = random.Random(1)
    src = [" ".join(generator.sample("abcdefghijklmnopqrst", 4)) for _ in range(430)]
    tgt = [line.upper()[::-1] for line in src]
    write(tmp_path, "train", src[:400], tgt[:400])
    write(tmp_path, "test", [*src[400:], ""], [*tgt[400:], ""])
    assert run(tmp_path) == 0
    *lines, empty, end = (tmp_path / "test.silver.links").read_text().split("\n")
    assert len(lines) == 30 and empty == end == ""
    found = [link for line in lines for link in line.split()]
    right = [link for link in found if link in ("0-3", "1-2", "2-1", "3-0")]
    assert len(right) > 0.9 * 120 and len(right) > 0.9 * len(found)
