"""Alignment of a small model and of a pruned one, from files to files, by the scripts."""

import json
import random
from pathlib import Path

import pandas as pd
import pytest
import torch
from script_runner import run_script
from small_models import make_model

from headcount.base.errors import UserError
from headcount.base.settings.data import BpeSettings
from headcount.base.settings.heads import AlignmentSettings
from headcount.data.bpe import segment_corpus
from headcount.data.vocabulary import Vocabulary
from headcount.data.word_links.links import LinkedPair, read_linked, write_linked
from headcount.heads.alignment_rates import write_alignment
from headcount.model.removal import remove_units
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

pytestmark = pytest.mark.slow

SIZES = {"sentences": 20, "batch_tokens": 60}
REMOVED = ("dec_enc.0.1", "dec_enc.2.0")  # layer 2 has one head in the small model


class Files:
    """A segmented pair with links, a model, and a pruned model."""

    def __init__(self, folder: Path):
        self.folder, self.bpe = folder, folder / "bpe"
        generator = random.Random(1)
        lines = [generator.choices(["yak", "kato", "ser", "."], k=5 + n % 3) for n in range(20)]
        for side in ("src", "tgt"):
            text = "".join(" ".join(line[side == "tgt" :]) + "\n" for line in lines)
            (folder / f"t.{side}").write_text(text)
        links = [" ".join(f"{n + 1}{'-p'[n == 1]}{n}" for n in range(len(x) - 1)) for x in lines]
        (folder / "t.links").write_text("".join(f"{line}\n" for line in links))
        paths = (folder / "t.src", folder / "t.tgt")
        settings = BpeSettings(joint=False, merges=3)
        segment_corpus(paths, paths, ("en", "xx"), True, settings, self.bpe)
        sizes = (len(Vocabulary.load(self.bpe / f"{side}.vocab")) for side in ("src", "tgt"))
        self.model = make_model(2, False, *sizes)
        names = [head.name() for head in self.model.grid.heads()]
        kept = torch.tensor([float(name not in REMOVED) for name in names])
        self.save(self.model, "model", {})
        smaller = remove_units(self.model, kept)
        self.save(smaller, "pruned", {"kept_heads": [n for n in names if n not in REMOVED]})

    def save(self, model, name: str, facts: dict) -> None:
        facts = facts | PairFolder(self.bpe).subwords()
        ModelFolder(self.folder / name).save(model, dict(model.named_parameters()), facts)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Files:
    """Files, with what the scripts made of them in `out` and `out_pruned`."""
    made = Files(tmp_path_factory.mktemp("alignment"))
    folder, linked = made.folder, made.folder / "t.jsonl"
    raw = ["--raw", folder / "t.links", "--bpe", made.bpe, "--text", folder]
    assert run_script("links", [*raw, "--test", "t", "--out", linked]) == 0
    given = ["--bpe", made.bpe, "--links", linked, "--models", folder / "model", folder / "pruned"]
    given += ["--outs", folder / "out", folder / "out_pruned", "--alignment-sentences", 20]
    assert run_script("alignment", [*given, "--alignment-batch-tokens", 60]) == 0
    return made


@pytest.mark.parametrize(("layer", "head"), [(0, 1), (1, 2)])
@pytest.mark.parametrize("step", ["output", "input"])
def test_rates_are_those_of_the_attention_that_is_written(files, tmp_path, layer, head, step):
    """The rates of ten sentences, from the JSON of attention.py, by loops."""
    texts = [("--source", "t.src"), ("--target", "t.tgt")]
    halves = {flag: (files.folder / name).read_text().splitlines()[1::2] for flag, name in texts}
    given = ["--model", files.folder / "model", "--bpe", files.bpe, "--level", "subword"]
    for flag, lines in halves.items():
        path = tmp_path / flag.strip("-")
        path.write_text("".join(f"{line}\n" for line in lines))
        given += [flag, path]
    given += ["--kind", "dec_enc", "--layer", layer, "--head", head, "--out", tmp_path / "a.json"]
    assert run_script("attention", given) == 0
    maps = json.loads((tmp_path / "a.json").read_text())["maps"]
    pairs = read_linked(files.folder / "t.jsonl")[1::2]
    assert len(maps) == len(pairs) == 10
    table = pd.read_csv(files.folder / "out/alignment.csv")
    for words in ("all", "content"):
        counts = [rates(*both, step, words) for both in zip(maps, pairs, strict=True)]
        sure, possible, links, wanted = map(sum, zip(*counts, strict=True))
        row = table.query(
            "system == 'head' and layer == @layer and head == @head and step == @step"
        ).query("words == @words")
        expected = [1 - (sure + possible) / (links + wanted), possible / links, sure / wanted]
        assert row[["aer", "precision", "recall"]].iloc[0].tolist() == pytest.approx(expected)


def rates(drawn: dict, pair: LinkedPair, step: str, words: str) -> tuple[int, int, int, int]:
    """Return counts of one sentence from weights between pieces, with <s> and </s>."""
    weights, query, links = drawn["weights"], int(step == "input"), set()
    for target, word in enumerate(pair.target):
        rows, query = weights[query : query + len(word)], query + len(word)
        sums, key = {}, 0
        for source, pieces in enumerate(pair.source):
            if words == "all" or pieces != ["."]:
                sums[source] = sum(sum(row[key : key + len(pieces)]) for row in rows)
            key += len(pieces)
        if words == "all":
            sums["</s>"] = sum(row[key] for row in rows)
        if words == "all" or word != ["."]:
            links.add((max(sums, key=sums.get), target))
    links = {link for link in links if link[0] != "</s>"}
    sure, possible = (
        {(s, t) for s, t in some if words == "all" or ["."] not in (pair.source[s], pair.target[t])}
        for some in (pair.sure, pair.possible)
    )
    return len(links & sure), len(links & possible), len(links), len(sure)


def test_heads_of_a_pruned_model_have_their_first_addresses(files):
    whole, pruned = (
        pd.read_csv(files.folder / name / "alignment.csv").query("system == 'head'")
        for name in ("out", "out_pruned")
    )
    addresses = [
        {f"dec_enc.{row.layer:.0f}.{row.head:.0f}" for row in table.itertuples()}
        for table in (whole, pruned)
    ]
    assert addresses[0] - addresses[1] == set(REMOVED)


def test_facts_name_the_chosen_heads_and_where_they_come_from(files):
    facts = json.loads((files.folder / "out/alignment.json").read_text())
    assert (facts["links"], facts["sentences"], len(facts["best"]["4"])) == ("gold", 20, 4)
    assert facts["best"]["4"][:1] == facts["best"]["1"]
    assert str(files.folder / "t.jsonl") in facts["provenance"]["inputs"]


def test_every_model_needs_a_folder_to_write_into(files, tmp_path, capsys):
    given = ["--bpe", files.bpe, "--links", files.folder / "t.jsonl", "--models"]
    given += [files.folder / "model", files.folder / "pruned", "--outs", tmp_path / "out"]
    assert run_script("alignment", given) == 2
    assert "as many of both, found 2 and 1" in capsys.readouterr().err


def test_a_text_without_links_is_refused(files, tmp_path):
    pairs = [
        LinkedPair(pair.source, pair.target, [], [])
        for pair in read_linked(files.folder / "t.jsonl")
    ]
    write_linked(tmp_path / "t.jsonl", iter(pairs))
    with pytest.raises(UserError, match="expected two sentences or more with links"):
        write_alignment(
            [], [], PairFolder(files.bpe), tmp_path / "t.jsonl", AlignmentSettings(), []
        )
