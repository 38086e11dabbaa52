"""Fixtures of the tests of two engines: results and a clone of them. Which files run first.

Tests lie in folders named after the package's, those of the workflow, of the benchmarks and of the
project as a whole beside them. What they share is in `helpers`, which pytest finds by itself.
"""

import fcntl
import gc
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
import torch
from project_copy import ProjectCopy
from shared_results import build, copied_clone

from headcount.model import machine


def pytest_configure(config: pytest.Config) -> None:
    """The whole suite tries five times as many examples of each property as the fast tests."""
    examples = 30 if _is_fast(config) else 150
    hypothesis.settings.register_profile("tests", deadline=None, max_examples=examples)
    hypothesis.settings.load_profile("tests")
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX512"):
        os.environ.setdefault("CT2_USE_MKL", "1")  # before a test imports CTranslate2


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of nothing but slow tests are not even imported where those are left out."""
    if not _is_fast(config) or collection_path.suffix != ".py":
        return None
    marked = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.slow\b", re.MULTILINE)
    return bool(marked.search(collection_path.read_text(encoding="utf-8"))) or None


def _is_fast(config: pytest.Config) -> bool:
    return config.option.markexpr == "not slow"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """What is imported stays: the garbage collector need not go through it, now or in any test."""
    gc.disable()
    found = yield
    gc.enable()
    gc.freeze()
    gc.set_threshold(100_000)  # by default it begins after 700 objects
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that none runs alone at the end: those with engines, and benchmarks.

    The second does without the origin, as another process would wait until the first has built it.
    """
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    shared = {item.path for item in items if "origin" in item.fixturenames}
    own = {path for path in slow if path.parent.name in ("workflow", "benchmarks")} - shared
    items.sort(key=lambda item: (item.path not in shared | own, -slow[item.path]))
    files = dict.fromkeys(item.path for item in items)
    begin = {next((path for path in files if path in kind), None) for kind in (shared, own)}
    items.sort(key=lambda item: item.path not in begin)


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """No test cuts the power, so that what is written need not be on the disk before it goes on.

    A killed process leaves the kernel all that it has written. That files are flushed, and when,
    `test_files.py` has; commands in tests are processes of their own, which do wait.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def threads_are_set_again() -> Iterator[None]:
    """Many scripts run in this process, and the rest of `use_threads` can be done once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "use_threads", torch.set_num_threads)
        patch.setattr(
            torch, "set_num_interop_threads", lambda threads: None
        )  # where it was imported
        yield


@pytest.fixture(scope="session")
def origin(tmp_path_factory) -> ProjectCopy:
    """A repository whose quickstart Snakemake built, DVC adopted, and both committed and pushed.

    Built once for all files of tests, also by several processes at once: so no test changes it, or
    its remote. It also has what `build` returns.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "engines" / "-the team's $HOME; 🙂 שלום"
    done = shared / "origin.json"
    with (shared / "origin.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder.parent, ignore_errors=True)  # of a process that failed here
            done.write_text(json.dumps(build(folder)))
    copy = ProjectCopy.of(folder)
    vars(copy).update(json.loads(done.read_text()))
    return copy


@pytest.fixture
def clone(origin, tmp_path) -> ProjectCopy:
    """What a fresh clone beside the origin is once everything is pulled."""
    return copied_clone(origin, f"{tmp_path.parent.name}-{tmp_path.name}")
