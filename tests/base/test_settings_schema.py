"""Experiments: what may stand in one, and what the page about it says."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from headcount.base.errors import UserError
from headcount.base.settings.experiment import Experiment, experiment_names, load_experiment
from headcount.base.settings.handbook import settings_page
from headcount.base.settings.names import Pair, contradict, parse_pair, two_letters
from headcount.base.settings.runs import labels
from headcount.base.settings.training_runs import BASELINE

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def load(tmp_path: Path):
    """The experiment in a text, below a first line that names a pair."""

    def loaded(text: str = "", pairs: str = "[synthetic.en-art]") -> Experiment:
        (tmp_path / "x.yaml").write_text(f"pairs: {pairs}\n{text}")
        return load_experiment("x", tmp_path)

    return loaded


def test_defaults_are_those_of_the_sections(load):
    found = load()
    assert (found.runs, found.seeds, found.title) == ([BASELINE], [1], "")
    assert (found.model.preset, found.model.d_model, found.train.updates) == ("base", 512, 30000)


def test_runs_are_named_by_counts_of_the_models_own_heads(load):
    # 3 layers of each kind with 4 heads are 36; 12.5 % of them 4.5.
    text = "model: {preset: small}\nruns: [baseline, random-12.5%, impt-5%-ema0.90]"
    assert labels(load(text).runs) == ["baseline", "random-5", "impt-2-ema0.9"]
    with pytest.raises(
        UserError, match=r"x\.yaml:3: runs\[1\]: run 'impt-37': .* nearest: impt-36$"
    ):
        load("runs: [impt-36,\n  impt-37]\nmodel: {preset: small}")


def test_whole_numbers_are_numbers_and_numbers_are_not_whole(load):
    assert load("model: {dropout: 0}").model.dropout == 0.0
    with pytest.raises(UserError, match=r"x\.yaml:2: seeds\[0\]: expected a whole .* found 1\.0"):
        load("seeds: [1.0]")


def test_a_named_size_overrides_the_preset(load):
    model = load("model: {preset: small, encoder_layers: 2, heads: 8}").model
    assert (model.encoder_layers, model.decoder_layers, model.head_width) == (2, 3, 32)


def test_separate_code_files_are_allowed(load):
    assert load("bpe: {joint: false}").bpe.joint is False


def test_an_experiment_cannot_change_once_read(load):
    with pytest.raises(ValidationError, match="frozen"):
        load().train.updates = 3


def test_f03_a_preset_that_does_not_exist_is_one_fault(load):
    with pytest.raises(UserError) as caught:
        load("model:\n  preset: bse")
    assert str(caught.value).endswith(
        "x.yaml:3: model.preset: expected tiny, small, base, big or iwslt, found 'bse'"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("runs: [random-145]", r"runs\[0\]: run 'random-145': expected 0 to 144 heads, as many"),
        (
            "runs: [impt-0.5%, impt-1]",
            "runs: 'impt-1' is listed twice; .*; a share counts as the n",
        ),
        ("runs: [3]", r"runs\[0\]: expected text or a mapping with keys from method, .*, found 3"),
        ("runs: [[]]", r"runs(\[0\])*: expected text or a mapping with keys from method"),
        ("runs: []", r"runs: expected a list of at least 1 \(each text or .*\), found \[\]"),
        ("seeds: [0]", r"seeds\[0\]: expected a whole number from 1 to 1000000000, found 0"),
        ("seeds: [-1]", r"seeds\[0\]: expected a whole number from 1 to 1000000000, found -1"),
        ("seeds: [3, 1, 3]", "seeds: 3 is listed twice; name each entry once"),
        ("bpe: {merges: -1}", r"bpe\.merges: expected a whole number from 0 to 1000000, found -1"),
        ("decode: {beam: 0}", r"decode\.beam: expected a whole number from 1 to 1000, found 0"),
        ("model: {d_ff: -4}", r"model\.d_ff: expected a whole number from 1 to 1000000, found -4"),
        ("importance: {sentences: 1}", r"importance\.sentences: .* 2 or more, found 1"),
        ("importance: {abs: word}", r"importance\.abs: expected sentence, token, .* 'word'"),
        ("masking: {groups: 0}", r"masking\.groups: .* whole number from 1 to 1000000, found 0"),
        ("masking: {draws: -1}", r"masking\.draws: .* whole number from 0 to 10000, found -1"),
        ("masking: {sentences: 0}", r"masking\.sentences: .* 1 or more, found 0"),
        ("model: {dropout: 1}", r"model\.dropout: .* 0 or more and less than 1, found 1"),
    ],
)
def test_f05_f07_values_out_of_range_name_the_range(load, text, told):
    with pytest.raises(UserError, match=rf"x\.yaml:2: {told}"):
        load(text)


@pytest.mark.parametrize(
    ("section", "keys"),
    [
        ("train", "threads batch_tokens accumulate average_last"),
        ("decode", "threads batch_tokens beam max_source max_length_extra"),
        ("importance", "threads batch_tokens"),
        ("roles", "threads batch_tokens"),
        ("lrp", "threads"),
        ("speed", "threads repeats"),
        ("masking", "groups draws"),
        ("ablation", "draws"),
        ("bpe", "merges"),
        ("model", "encoder_layers decoder_layers d_model d_ff d_head"),
    ],
)
def test_x01_x02_x08_what_takes_memory_or_threads_has_an_upper_bound(load, section, keys):
    for key in keys.split():
        least = 0 if key in ("draws", "merges") else 2 if key == "d_model" else 1
        words = (
            rf"x\.yaml:2: {section}\.{key}: expected a whole number from {least} to (\d+), found"
        )
        with pytest.raises(UserError, match=words) as caught:
            load(f"{section}: {{{key}: 1000000000000}}")
        most = int(re.search(words, str(caught.value)).group(1))
        assert most == 1024 if key == "threads" else 1000 <= most <= 10**8


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{heads: 1000000000000, d_head: 1}", "heads: expected 0 to 1000, found 1000000000000"),
        (
            "{d_ff: 1000000, d_model: 100000, heads: 8}",
            r"these sizes make 3\.1e\+12 weights, expected at most 1\.0e\+11; lower d_model, d_ff, "
            "layers or heads",
        ),
    ],
)
def test_x01_f38_a_model_that_no_memory_holds_is_refused(load, text, told):
    """10^5 · (4 · 144 heads · 12,500 wide + 2 · 12 layers · 10^6) = 3.12 · 10^12."""
    assert load("model: {d_ff: 1000000}").model.d_ff == 10**6
    with pytest.raises(UserError, match=rf"x\.yaml:2: model: {told}"):
        load(f"model: {text}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{d_model: 100, heads: 8}", "d_model 100 is not divisible by heads 8; change one of"),
        ("{heads: -2}", "heads: expected 0 to 1000, found -2"),
        ("{heads: {enc_self: [1, 1]}}", "heads are listed by layer, so d_head must be named"),
        (
            "{preset: tiny, d_head: 8, heads: {enc_self: [1, 2], dec_self: [1]}}",
            r"heads\.dec_self: expected a list of 2 counts, 0 to 1000, found \[1\]",
        ),
    ],
)
def test_f08_heads_that_do_not_fit_the_model(load, text, told):
    with pytest.raises(UserError, match=rf"x\.yaml:2: model: {told}"):
        load(f"model: {text}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "model: {position_table: 1000}",
            r"decode\.max_source: expected at most 999, .* 1000",
        ),
        (
            "model: {position_table: 200}\ndecode: {max_source: 199}",
            r"text\.max_words: expected at most 199, .* found 200",
        ),
        (
            "model: {encoder_layers: 1, decoder_layers: 1, d_head: 2,"
            " heads: {enc_self: [0], dec_self: [9], dec_enc: [9]}}",
            r"model\.heads: expected a head in the encoder",
        ),
    ],
)
def test_sizes_that_no_job_could_work_with_are_refused(load, text, told):
    with pytest.raises(UserError, match=told):
        load(text)
    assert load("model: {position_table: 1001}").decode.max_source == 1000


def test_more_groups_than_heads_are_refused(load):
    heads = (
        "{preset: tiny, d_head: 8, heads: {enc_self: [3, 0], dec_self: [1, 2], dec_enc: [1, 1]}}"
    )
    assert load(f"model: {heads}").masking.groups == 8  # as many as the model's heads
    told = r"x\.yaml:1: masking\.groups: expected at most 8, the number .* heads, found 9"
    with pytest.raises(UserError, match=told):
        load(f"model: {heads}\nmasking: {{groups: 9}}")


def test_importance_is_divided_by_its_norm_in_one_place(load):
    divided = "importance: {normalise: layer_l2}"
    with pytest.raises(UserError, match=r"importance\.normalise: expected none where ablation\.ru"):
        load(f"runs: [baseline]\nablation: {{runs: [baseline]}}\n{divided}")
    assert load(divided).importance.normalise == "layer_l2"


def test_f08_a_faulty_list_of_heads_is_named_at_its_entry(load):
    with pytest.raises(UserError) as caught:
        load("model:\n  heads:\n    enc_self: [1, x]\n")
    told = "x.yaml:4: model.heads.enc_self[1]: expected a whole number, found 'x'"
    assert str(caught.value).endswith(told)


@pytest.mark.parametrize(
    "name",
    [
        "multi30k.en-de;rm",
        "$(touch canary).en-de",
        "{input}.en-de",
        "multi30k.en-{output}",
        "multi30k.en-de\n",
        "../up.en-de",
        "-n.en-de",
        ".en-de",
        "a.b.en-de",
        "multi30k.en-",
        "multi30k.en_de",
        "multi30k",
        "a.zh-Hans-de",
        "korpüs.en-de",
        "x" * 65 + ".en-de",
        "",
    ],
)
def test_f10_pair_names_are_on_an_allow_list(name):
    with pytest.raises(UserError, match=r"expected (<corpus>|a name)"):
        parse_pair(name)


def test_f10_a_hostile_pair_in_a_file_is_quoted_back(load):
    with pytest.raises(UserError, match=r"x\.yaml:1: pairs\[0\]: pair 'a\.en-de\\n': expected"):
        load(pairs='["a.en-de\\n"]')


def test_a_pair_reads_one_way():
    assert parse_pair("news-v15.en-pt_BR") == Pair("news-v15", "en", "pt_BR")
    assert str(Pair("multi30k", "en", "de")) == "multi30k.en-de"
    with pytest.raises(UserError, match="expected two languages, found 'en' twice"):
        parse_pair("multi30k.en-en")


def test_pairs_are_named_once_and_at_least_one(load):
    with pytest.raises(UserError, match=r"pairs: 'a\.b-c' is listed twice"):
        load(pairs="[a.b-c, a.c-b, a.b-c]")
    with pytest.raises(UserError, match=r"pairs: expected a list of at least 1 .*, found \[\]"):
        load(pairs="[]")


@pytest.mark.parametrize("name", ["../x", "x;y", "{x}", "a\nb", "-x", "corpora", "x.yaml", ""])
def test_f10_experiment_names_are_on_an_allow_list(tmp_path, name):
    (tmp_path / "corpora.yaml").write_text("{}")
    with pytest.raises(UserError, match="experiment"):
        load_experiment(name, tmp_path)


def test_an_experiment_that_does_not_exist_names_the_nearest():
    with pytest.raises(UserError, match=r"no .*multi30.yaml; nearest: multi30k$"):
        load_experiment("multi30", CONFIG)
    known = ", ".join(sorted({path.stem for path in CONFIG.glob("*.yaml")} - {"corpora", "models"}))
    with pytest.raises(UserError, match=f"known: {known}$"):
        load_experiment("zzz", CONFIG)


@pytest.mark.parametrize("name", experiment_names(CONFIG))
def test_every_experiment_file_is_valid(name):
    assert load_experiment(name, CONFIG).title


def test_the_page_about_settings_names_every_key_with_its_default():
    page = settings_page()
    for name, field in Experiment.model_fields.items():
        section = field.annotation
        inner = getattr(section, "model_fields", {})
        keys = [f"{name}.{each.alias or key}" for key, each in inner.items()]
        assert all(f"\n| `{key}` |" in page for key in [name, *keys]), name
    assert "\n| `runs.method` |" in page and "\n| `pruned.lambda` |" in page
    assert re.search(r"^\| `train.patience` \| [^|]+ \| `0` \| \w", page, re.M)
    assert re.search(r"^\| `decode.beam` \| [^|]+ \| `4` \| \w", page, re.M)


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("en", "en"),
        ("jpn", "ja"),
        ("zh_TW", "zh"),
        ("CMN", "zh"),
        ("zh_tw", "zh"),
        ("zho_Hant", "zh"),
        ("zh_Hant_TW", "zh"),
        ("es_419", "es"),
        ("est", "et"),
        ("my_lang", "my_lang"),  # no Burmese
        ("de_own", "de_own"),
        ("art", "art"),
        ("dea", "dea"),  # none of German's codes
    ],
)
def test_a_language_is_known_by_its_codes(name, letters):
    assert two_letters(name) == letters


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("deu_Latn", "de", False),
        ("pt-BR", "por", False),
        ("nob", "no", False),
        ("vie", "vi", False),
        ("roa", "de", False),  # Romance languages
        ("ROMANCE", "de", False),
        ("art", "de", False),
        ("deu", "en", True),
        ("tur_Latn", "vi", True),
    ],
)
def test_names_of_two_languages_contradict(first, second, expected):
    assert contradict(first, second) is contradict(second, first) is expected
