"""Archives of finished runs, and how two versions of a file are compared."""

import hashlib
import re
import tarfile

import pytest
from workflow_modules import load

from headcount.base.errors import UserError

FOLDER = "results/mine/train/a.x-y/baseline/seed2"
BENCHMARK = "results/mine/benchmarks/train/a.x-y.baseline.seed2.tsv"
FILES = {f"{FOLDER}/curves.csv": b"step\n1\n", BENCHMARK: b"s\n7\n"}


@pytest.fixture
def archive(monkeypatch, tmp_path):
    module = load(monkeypatch, "archive")
    monkeypatch.chdir(tmp_path)
    return module


def made(archive, files: dict[str, bytes], checksum: str = "", about: dict | None = None):
    record = {"record_format_version": 6, "rule": "train", "shellcmd": "x", "endtime": 5.0}
    record |= {"params": [], "input": [], "log": [], "code": None, "conda_env": None}
    record |= {"container_img_url": None, "software_stack_hash": "", "starttime": 1.0}
    record |= {"incomplete": False, "external_jobid": None, "input_checksums": {}}
    own = {path: content for path, content in files.items() if path != BENCHMARK}
    records = {
        path: record | {"sha256": checksum or hashlib.sha256(content).hexdigest()}
        for path, content in own.items()
    }
    return archive.Archive(about or {"machine": "a lathe"}, records, files)


def kept(archive, files: dict[str, bytes], checksum: str = ""):
    path = archive.archive_path("mine", archive.Run("a.x-y", "baseline", 2))
    archive.write_archive(path, made(archive, files, checksum))
    return path


def test_runs_in_words_stand_together_where_they_can(archive):
    """Names of one pair and seed; then seeds of one pair that have the same names."""
    runs = [archive.Run("a.x-y", name, seed) for seed in (1, 2) for name in ("one", "two")]
    assert archive.listed_runs(runs) == "one, two, seeds 1, 2 of a.x-y"
    others = [archive.Run("b.x-y", "one", 1), archive.Run("a.x-y", "one", 3)]
    told = "one, two, seeds 1, 2 of a.x-y; one, seed 1 of b.x-y; one, seed 3 of a.x-y"
    assert archive.listed_runs([*runs, *others]) == told
    assert str(runs[0]) == "one, seed 1 of a.x-y"


def test_a_training_without_a_curve_is_named_with_what_to_do(archive):
    about = {"machine": "a lathe", "pair": "a.x-y", "run": "baseline", "seed": 2}
    words = "the kept baseline, seed 2 of a.x-y: expected curves.csv, found none. Bring it back by"
    with pytest.raises(UserError, match=words):
        archive.Archive(about, {}, {BENCHMARK: b"s\n7\n"}).last_update()
    assert archive.Archive(about, {}, FILES).last_update() == 1


def test_an_archive_comes_back_and_the_same_run_has_the_same_bytes(archive):
    path = kept(archive, FILES)
    assert path.as_posix() == "docs/results/mine/kept/a.x-y/baseline.seed2.tar.xz"
    ((run, found),) = archive.read_archives("mine").items()
    assert run == ("a.x-y", "baseline", 2) and found.files == FILES
    assert found.about == {"machine": "a lathe"} and list(found.records) == [f"{FOLDER}/curves.csv"]
    before = path.read_bytes()
    kept(archive, dict(reversed(FILES.items())))
    assert path.read_bytes() == before


def test_archives_come_in_the_order_of_pairs_runs_and_seeds(archive):
    for pair, seed in (("b.x-y", 1), ("a.x-y", 10), ("a.x-y", 9)):
        run = archive.Run(pair, "r", seed)
        archive.write_archive(archive.archive_path("mine", run), made(archive, {}))
    assert [(run.pair, run.seed) for run in archive.read_archives("mine")] == [
        ("a.x-y", 9),
        ("a.x-y", 10),
        ("b.x-y", 1),
    ]


def test_weights_are_no_file_of_an_archive(archive):
    assert archive.is_kept(f"{FOLDER}/model/model.json") and archive.is_kept(f"{FOLDER}/bleu.json")
    for name in ("model/weights.safetensors", "updates/200.safetensors", "model/tokenizer.json"):
        assert not archive.is_kept(f"{FOLDER}/{name}")


@pytest.mark.parametrize(
    ("files", "checksum", "words"),
    [
        ({f"{FOLDER}/run.json": b"{}"}, "0" * 64, "run.json is not what its job wrote"),
        ({"results/mine/train/a.x-y/baseline/seed3/run.json": b""}, "", "is no file of baseline"),
        ({f"{FOLDER}/../../x": b""}, "", r"\.\./x is no file of baseline, seed 2 of a\.x-y"),
        ({"src/run.py": b""}, "", "src/run.py is no file of baseline"),
    ],
)
def test_what_is_not_the_runs_own_is_refused(archive, files, checksum, words):
    path = kept(archive, files, checksum)
    with pytest.raises(UserError, match=f"^{re.escape(str(path))}: .*{words}.* keep the run again"):
        archive.read_archives("mine")


def test_scores_of_another_model_than_the_kept_one_are_refused(archive):
    model, scores = f"{FOLDER}/model/model.json", f"{FOLDER}/bleu.json"
    whole = made(archive, {model: b"{}", scores: b"[]"})
    path = archive.archive_path("mine", archive.Run("a.x-y", "baseline", 2))
    whole.records[scores]["input_checksums"] = {
        model: f"sha256:{hashlib.sha256(b'{}').hexdigest()}"
    }
    archive.write_archive(path, whole)
    path.with_name(f".part-{path.name}").write_bytes(b"")  # of a writer that was killed
    assert archive.read_archives("mine")
    whole.records[scores]["input_checksums"] = {model: f"sha256:{'0' * 64}"}
    archive.write_archive(path, whole)
    with pytest.raises(UserError, match=f"{scores} was made from another {model} than the one"):
        archive.read_archives("mine")


def test_a_damaged_archive_and_none_are_named(archive):
    with pytest.raises(UserError, match=r"docs/results/mine/kept: expected finished runs, found"):
        archive.read_archives("mine")
    path = kept(archive, FILES)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match=r"seed2.tar.xz: expected an archive of a run: .* checkout"):
        archive.read_archives("mine")
    with tarfile.open(path, "w:xz"):
        pass
    with pytest.raises(UserError, match=r"expected an archive of a run: 'about.json'"):
        archive.read_archives("mine")


@pytest.fixture
def differences(monkeypatch):
    return load(monkeypatch, "differences").differences


def test_a_table_differs_but_in_its_times(differences):
    kept, slower = (
        b"step,loss,seconds\n1,2.5,7\n2,2.0,9\n",
        b"step,loss,seconds\n1,2.5,8\n2,2.0,9\n",
    )
    assert differences("a/curves.csv", kept, slower, 0) == ""
    other = b"step,loss,seconds\n1,2.5,7\n2,2.5,9\n"  # of 2.0 and 2.5 the difference is 0.5 ÷ 2.5
    told = "curves.csv: 1 of 4 values differ, by up to 0.2 of a value; row 2, loss: kept '2.0', "
    assert differences("curves.csv", kept, other, 0) == told + "here '2.5'"
    assert differences("curves.csv", kept, other, 0.2) == ""
    assert differences("curves.csv", kept, other, 0.19) != ""
    shorter = "curves.csv: 2 of 4 values differ; row 2, step: kept '2', here nothing"
    assert differences("curves.csv", kept, b"step,loss,seconds\n1,2.5,7\n", 9) == shorter


def test_a_json_differs_but_in_how_it_was_made(differences):
    kept = b'{"scores": [{"score": 30.25}], "sha256": {"w": "aa"}, "provenance": {"seed": 1}}'
    again = kept.replace(b'"seed": 1', b'"seed": 2')
    assert differences("bleu.json", kept, again, 0) == ""
    told = "bleu.json: 1 of 2 values differ; .sha256.w: kept 'aa', here 'ab'"
    assert differences("bleu.json", kept, kept.replace(b"aa", b"ab"), 0) == told
    assert differences("bleu.json", kept, kept.replace(b"aa", b"ab"), 1e-9) == ""
    assert ".scores.0.score: kept 30.25" in differences(
        "bleu.json", kept, kept.replace(b"30.25", b"30.5"), 0
    )


@pytest.mark.parametrize(("one", "other"), [("0.0", "-0.0"), ("0", "0.0"), ("nan", "NaN")])
def test_numbers_of_a_table_that_are_written_otherwise_are_the_same(differences, one, other):
    assert differences("a.csv", f"x\n{one}\n".encode(), f"x\n{other}\n".encode(), 0) == ""


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [("a.txt", "2000", "2001"), ("a.txt", "12", "12.0"), ("a.json", '"1"', "1")]
    + [("a.json", "true", "1"), ("a.jsonl", '{"text": "7"}', '{"text": "7.0"}')],
)
def test_text_is_no_number_whatever_it_looks_like(differences, name, one, other):
    assert "1 values differ" in differences(name, one.encode(), other.encode(), 0.5)


def test_a_file_that_cannot_be_read_differs(differences):
    told = "bleu.json: differs, and the kept one or that here cannot be read (Expecting "
    assert differences("bleu.json", b'{"a": 1}', b'{"a": ', 0.5).startswith(told)
    assert "cannot be read ('utf-8' codec" in differences("a.csv", b"x\n1\n", b"x\n\xff\n", 0)


def test_a_kept_run_grows_but_by_what_was_made_from_it(archive, monkeypatch):
    """The model here has the same values and other bytes: a table of it is not put beside it."""
    grown = load(monkeypatch, "kept")._grown
    model, table = f"{FOLDER}/model/model.json", f"{FOLDER}/a.csv"
    about = {"machine": "a lathe", "commit": "a1"}
    old, new = (made(archive, {model: content}) for content in (b"{}", b"{ }"))
    more = made(archive, {model: b"{ }", table: b"x\n"})
    for each in (old, new, more):
        each.about.update(about)
    assert set(grown(old, made(archive, {table: b"x\n"}, about=about)).files) == {model, table}
    more.records[table]["input_checksums"] = {model: f"sha256:{new.records[model]['sha256']}"}
    assert grown(old, more) is more
    old.files[f"{FOLDER}/curves.csv"] = b"step\n"
    with pytest.raises(UserError, match=r"curves\.csv: expected this file here, as it is kept"):
        grown(old, more)


def test_a_value_that_one_file_lacks_differs_whatever_it_is(differences):
    kept, null = b'{"a": 1}', b'{"a": 1, "b": null}'
    assert differences("x.json", kept, null, 9) == (
        "x.json: 1 of 1 values differ; .b: kept nothing, here None"
    )
    assert "; .b: kept None, here nothing" in differences("x.json", null, kept, 9)
    empty = null.replace(b"null", b"[]")
    assert "; .b: kept nothing, here []" in differences("x.json", kept, empty, 9)


def test_the_checksum_under_weights_is_left_out_within_a_bound(differences):
    kept = b'{"data": "train", "weights": "71a3"}'
    other = kept.replace(b"71a3", b"82b4")
    assert "; .weights: kept '71a3', here '82b4'" in differences("importance.json", kept, other, 0)
    assert differences("importance.json", kept, other, 1e-9) == ""
    gone = b'{"data": "train"}'
    assert "; .weights: kept '71a3', here nothing" in differences("importance.json", kept, gone, 9)


def test_a_word_of_a_translation_is_never_near_enough(differences):
    told = "test.txt: 1 of 3 values differ; line 2: kept 'b', here 'c'"
    assert differences("test.txt", b"a\nb\n", b"a\nc\n", 9) == told
    maps = b'{"source": ["a"], "weights": [0.5]}\n'
    assert "line 1.source.0: kept 'a'" in differences(
        "s.jsonl", maps, maps.replace(b'"a"', b'"b"'), 0
    )
    assert differences("s.jsonl", maps, maps.replace(b"0.5", b"0.6"), 0.2) == ""
