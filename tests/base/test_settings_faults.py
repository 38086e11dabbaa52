"""Faults of settings files: every one stops with the file, the line and the key."""

from pathlib import Path
from typing import Any

import pytest
from fault_places import places
from pydantic import RootModel

from headcount.base.errors import UserError
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.pretrained import load_models
from headcount.base.settings.reader import read_settings

SHA256 = "1b" * 32
HUB = f"hub: a/b, revision: {'0a' * 20}"
FILES = f"files: {{config.json: {SHA256}, model.safetensors: {SHA256}}}"
IMPORTED = "text: {normal_form: none};model: {imported: opus, preset: small}"


class Anything(RootModel[dict[str, Any]]):
    """Takes every mapping, so that a test sees the reader alone."""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("train:\n  updates: 1\n  updates: 2", (3, "train.updates")),
        ("a: 1\nb: !!str 2", (2, "b")),
        ("a: &b {c: 1}", (1, "a")),
        ("a: *b", (1, "a")),
        ("a:\n  1: b", (2, "a")),
        ("? [a]\n: 1", (1, "")),
        ("", (1, "")),
        ("- a", (1, "")),
        ("a", (1, "")),
        ("a: 1\n---\nb: 2", (1, "")),
        ("a: [1,\n", (2, "")),
        ("a: 1\n b: 2", (2, "")),
        ("a:\n\tb: 1", (2, "")),
        ("a: " + "[" * 10**5, (1, "")),
    ],
)
def test_f04_files_that_are_no_settings_are_refused(tmp_path, text, place):
    check_values(tmp_path, text, place)


def check_values(folder: Path, text: str, place: tuple[int, str]) -> None:
    path = folder / "x.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as fault:
        read_settings(path, Anything)
    assert places(fault) == [place]


@pytest.mark.parametrize("content", [b"caf\xe9: 1", "a: b".encode("utf-16"), b"a: b\x00", None])
def test_what_is_no_text_is_refused(tmp_path, content):
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=r"x\.yaml: "):
        read_settings(path, Anything)


FAULTS = """
titel: a                                            | 2 titel           | nearest: title
train:;  peek_lr: 1                                 | 3 train.peek_lr   | nearest: peak_lr
train: {dropout: 0.1}                               | 2 train.dropout   | of model
train: {device: cpu}                                | 2 train.device    | resources.device
resources: {device: gpu}                            | 2 resources.device |
train:;  updates: 0;  peak_lr: false                | 3 train.updates, 4 train.peak_lr |
train: {peak_lr: '1e-2'}                            | 2 train.peak_lr   |
train: {peak_lr: 1e999}                             | 2 train.peak_lr   |
train: {keep_updates: [5], updates: 4, warmup_updates: 1} | 2 train.keep_updates |
train: {keep_updates: [5], patience: 3}             | 2 train.keep_updates |
train: {updates: 5}                                 | 2 train.warmup_updates |
train: {accumulate: 3, processes: 2}                | 2 train.accumulate |
seeds: [3, 1, 3]                                    | 2 seeds           | 3
decode: {engine: ctranslate2};resources: {device: cuda} | 2 decode.engine |
decode: {engine: ctranslate2-int8}                  | 2 decode.engine   | compute_type: int8
decode: {compute_type: int8}                        | 2 decode.compute_type | engine: ctranslate2
masking: {groups: 145}                              | 2 masking.groups  | 144
speed: {batch_sizes: [129]}                         | 2 speed.sentences |
many_pairs: {one_model: true}                       | 2 many_pairs.one_model | two pairs
many_pairs: {temperature: 2}                        | 2 many_pairs.temperature | one_model
many_pairs: {shares: [0.5]}                         | 2 many_pairs.shares | one_model
many_pairs: {shares: [1.0]}                         | 2 many_pairs.shares[0] |
savings: {batch_sizes: [1, 129]}                    | 2 savings.sentences |
savings: {batch_sizes: []}                          | 2 savings.batch_sizes |
savings: {compute_types: [int8]}                    | 2 savings.compute_types | float32
gates: {updates: 50}                                | 2 gates.warmup_updates |
roles: {relations: [dobj]}                          | 2 roles.relations[0] | obj
roles: {trees: [ewt]}                               | 2 roles.trees[0]  |
model: {d_model: 100}                               | 2 model.heads     |
model: {heads: {enc_self: [1, 1]}}                  | 2 model.heads     |
model: {d_head: 8, preset: tiny, heads: {enc_self: [1, 2], dec_self: [1]}} | 2 model.heads.dec_self |
model:;  heads:;    enc_slf: [1]                    | 4 model.heads.enc_slf |
model: {position_table: 1000}                       | 1 decode.max_source |
model: {position_table: 200};decode: {max_source: 9} | 1 text.max_words |
model: {encoder_layers: 1, decoder_layers: 1, d_head: 2, heads: {enc_self: [0], dec_self: [9], dec_enc: [9]}} | 2 model.heads |
model: {fine_tune: true}                            | 2 model.fine_tune |
runs: [3]                                           | 2 runs[0]         |
runs: [random-12.5%]                                | 2 runs[0]         | mapping
runs: [{method: randon, heads: 6}]                  | 2 runs[0].method  |
runs: [{method: random, heads: 6, probability: 0.5}] | 2 runs[0]        | probability
runs: [{method: baseline, signed: true}]            | 2 runs[0]         | signed
runs: [{method: importance, heads: 6, signed: true, unit: batch}] | 2 runs[0] | unit
runs: [{method: importance, heads: 6, cooldown_updates: 3, warmup_mask_updates: 9}] | 2 runs[0] | one of
runs: [baseline,; {method: random, heads: 145}]     | 3 runs[1]         | 144
runs: [{method: importance, heads: 100, exclude_kind: dec_self}] | 2 runs[0] | 96
runs: [{method: importance, heads: 37, cooldown_updates: 3}] | 2 runs[0] | 36
runs: [baseline, {method: baseline, attention_heads: 3}] | 2 runs[1].attention_heads |
runs: [{method: baseline, attention_heads: 2}]      | 2 runs            | baseline
runs: [{method: importance, heads: 1}, {method: importance, share: 0.5%}] | 2 runs | impt-1
runs: [baseline, {method: baseline, dropout: 0.1}]  | 2 runs            | baseline
runs: [{method: random, heads: 6, start_update: 30000}] | 2 runs        | random-6-after30000
runs: [{method: drophead}]                          | 2 runs[0]         | head_probability
runs: [{method: drophead, head_probability: 1.5}]   | 2 runs[0].head_probability |
runs: [{method: drophead, head_probability: 0.2, scope: layer}] | 2 runs[0] | scope
runs: [{method: drophead, heads: 6}]                | 2 runs[0]         | heads
runs: [{method: random, head_probability: 0.2}]     | 2 runs[0]         | head_probability
runs: [{method: importance, heads: 6, schedule: v}] | 2 runs[0]         | schedule
runs: [{method: random, heads: 6, draw: sentence, cooldown_updates: 2}] | 2 runs[0] | cooldown_updates
runs: [{method: baseline, rescale: layer}]          | 2 runs[0]         | rescale
runs: [{method: random, heads: 9, scope: layer}]    | 2 runs[0]         | 8
runs: [{method: drophead, head_probability: 0.2, schedule: [null, v]}] | 2 runs | drophead-0.2
runs: [{method: importance, hads: 3}]               | 2 runs[0].hads    | nearest: heads
runs: [{method: random, heads: 3, share: 5%}]       | 2 runs[0]         | share
runs: [{method: random, share: 12.5}]               | 2 runs[0].share   |
runs: [{method: random, share: 101%}]               | 2 runs[0]         |
runs: [{method: importance, heads: 6, rest: 3}]     | 2 runs[0].rest    | now cooldown_updates
runs:;  - {method: importance, heads: 6, held: [9]} | 3 runs[0].held    | now warmup_mask_updates
bpe: {unspaced: jieba}                              | 2 bpe.unspaced    | now unsegmented_scripts
more_seeds: [2]                                     | 2 more_seeds      | more_seeds_of
more_seeds: [1];more_seeds_of: [baseline]           | 2 more_seeds      | [1]
more_seeds: [2];more_seeds_of: [{method: random, heads: 4}] | 3 more_seeds_of | random-4
ablation: {runs: [base]}                            | 2 ablation.runs   | nearest: baseline
ablation: {runs: [{method: baseline}]}              | 2 ablation.runs[0] |
ablation: {updates: [3]}                            | 2 ablation.updates |
pruned: [gates-all-l1]                              | 2 pruned[0]       |
pruned: [{method: gates, lambda: 1}]                                     | 2 pruned          | gates-all-l0
pruned: [{method: random, lambda: 1}, {method: gates, lambda: 0}] | 2 pruned | gates-all-l1
pruned: [{method: gates, lambda: 0, from: {method: importance, heads: 4}}] | 2 pruned | impt-4
runs: [{method: random, heads: 4}];pruned: [{method: gates, lambda: 0, from: none}] | 3 pruned | baseline
pruned: [{method: gates, lambda: 1}, {method: gates, lambda: 1.0}]       | 2 pruned          | gates-all-l1
pruned: [{method: subset, heads: 145}]              | 2 pruned[0]       | 144
pruned: [{method: subset, heads: 8, from: none}]    | 2 pruned[0].from  |
pruned: [{method: gates, lambda: 0, from: {method: baseline, attention_heads: 2}}] | 2 pruned[0].from |
pruned: [{method: subset}]                          | 2 pruned[0]       | heads
pruned: [{method: gates}]                           | 2 pruned[0]       | lambda
pruned: [{method: gates, lamda: 0}]                 | 2 pruned[0].lamda | nearest: lambda
pruned: [{method: gates, lambda: 0, from: impt-5}]  | 2 pruned[0].from  | mapping
pruned: [{method: gates, lambda: 0}];train: {patience: 5} | 3 train.patience  |
model: {imported: opus, preset: small}              | 1 text.normal_form |
IMPORTED;bpe: {merges: 100}                         | 4 bpe             | subwords
IMPORTED;runs: [baseline, {method: random, heads: 6}] | 4 runs            | fine_tune
IMPORTED;seeds: [1, 2, 3]                           | 4 seeds           | fine_tune
IMPORTED;runs: [baseline, {method: baseline, attention_heads: 2}] | 1                 | baseline-h2
IMPORTED;pruned: [{method: gates, lambda: 0, from: none}] | 1                 | gates-all-l0-from-none
IMPORTED;train: {keep_updates: [5]};ablation: {runs: [baseline], updates: [5]} | 5 ablation.updates |
"""  # noqa: E501


@pytest.mark.parametrize("row", FAULTS.strip().split("\n"))
def test_f03_f05_x01_x02_x08_a_fault_names_line_and_key(tmp_path, row):
    text, expected, words = (part.strip() for part in row.split(" |"))
    text = text.replace("IMPORTED", IMPORTED).replace(";", "\n")
    (tmp_path / "x.yaml").write_text("pairs: [synthetic.en-art]\n" + text)
    with pytest.raises(UserError) as fault:
        load_experiment("x", tmp_path)
    listed = [(int(line), *key) for line, *key in (each.split() for each in expected.split(", "))]
    assert [(line, *([key] if key else [])) for line, key in places(fault)] == listed
    assert words in str(fault.value)


def test_a_share_has_a_head(tmp_path):
    text = "pairs: [a.x-y, a.y-x]\nmany_pairs: {one_model: true, shares: [0.5, 0.003]}\n"
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(UserError, match=r"0\.003\]: less than one of 144 heads"):
        load_experiment("x", tmp_path)


@pytest.mark.parametrize(
    "origin",
    [
        f"hub: a/b, revision: main, {FILES}",
        f"hub: a/b, {FILES}",
        f"{HUB}, path: own, {FILES}",
        HUB,
        f"{HUB}, files: {{config.json: {SHA256}}}",
        f"{HUB}, files: {{model.safetensors: null}}",
        f"{HUB}, files: {{model.safetensors: 1b}}",
        f"{HUB}, files: {{../model.safetensors: {SHA256}}}",
        "path: 'models/{mine}'",
    ],
)
def test_a_model_that_could_change_or_run_code_is_refused(tmp_path, origin):
    path = tmp_path / "models.yaml"
    path.write_text(f"opus: {{licence: a, citation: b, {HUB}, {FILES}}}\n")
    assert load_models(path)["opus"].files["model.safetensors"] == SHA256
    path.write_text(f"opus: {{licence: a, citation: b, {origin}}}\n")
    with pytest.raises(UserError, match=r"models\.yaml:1: opus"):
        load_models(path)


def test_a_long_value_is_cut(tmp_path):
    (tmp_path / "x.yaml").write_text(f"pairs: [a.b-c]\ntrain: {'x' * 500}")
    with pytest.raises(UserError) as fault:
        load_experiment("x", tmp_path)
    assert len(str(fault.value).partition("found")[2]) < 70


@pytest.mark.parametrize("name", ["../x", "x;y", "{x}", "a\nb", "-x", "corpora", "x.yaml", "", "y"])
def test_an_experiment_must_have_a_file_of_its_name(tmp_path, name):
    (tmp_path / "corpora.yaml").write_text("{}")
    (tmp_path / "xx.yaml").write_text("{}")
    with pytest.raises(UserError, match="(?s)experiment .*(nearest|known): xx"):
        load_experiment(name, tmp_path)
