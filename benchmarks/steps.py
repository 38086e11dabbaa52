"""What `python -m benchmarks` runs, on a CPU and on a GPU, and for how long."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

_TIMED = ("data", "device", "at-most", "results")
TAKES = {
    "training": (*_TIMED, "peers"),
    "decoding": (*_TIMED, "peers", "model"),
    "importance": (*_TIMED, "peers"),
    "headmask_cost": _TIMED,
    "ablation": (*_TIMED, "model", "source"),
    "memory": ("data", "device", "results", "peers"),
    "processes": ("data", "device", "results"),
    "planning": ("results",),
}
"""Flags of each benchmark whose values are those of the whole measuring."""


@dataclass(frozen=True)
class Step:
    """One benchmark with flags of its own; `minutes` are its share of all of them."""

    benchmark: str
    minutes: float
    flags: dict[str, Any]  # values by name; True for a flag without, a tuple for several

    @property
    def threads(self) -> int:
        """CPU threads of what is measured."""
        return self.flags.get("threads", 1)

    def takes(self, flag: str) -> bool:
        """Whether the benchmark has a flag of the whole measuring."""
        return flag in TAKES[self.benchmark]

    def alone(self) -> "Step":
        """The same without peers, and without a compiler."""
        kept = {name: value for name, value in self.flags.items() if name != "compile"}
        return replace(self, flags={**kept, "peers": ""})

    def words(self, given: Mapping[str, Any]) -> list[str]:
        """Module and flags: of those given what the benchmark takes, unless it has its own."""
        values = {name: given[name] for name in TAKES[self.benchmark]} | self.flags
        return [f"benchmarks.{self.benchmark}", *_shown(values)]

    def __str__(self) -> str:
        """The benchmark and its own flags."""
        return " ".join([self.benchmark, *_shown(self.flags)])


def _shown(flags: Mapping[str, Any]) -> Iterator[str]:
    for name, value in flags.items():
        several = value if isinstance(value, tuple) else () if value is True else (value,)
        yield from (f"--{name}", *map(str, several))


def _cpu() -> Iterator[Step]:
    """One thread by processor time, several by the clock on the wall."""
    one, two = {"threads": 1, "clock": "cpu"}, {"threads": 2}
    small = {"preset": "small", "updates": 4, "repeats": 5}
    yield Step("training", 3, two | small)
    yield Step("decoding", 2.5, two | {"peers": "ctranslate2"})
    yield Step("planning", 1, {"repeats": 1})
    yield Step("ablation", 1.5, two | {"sentences": 200, "heads": 6, "repeats": 3, "warm-up": 0})
    yield Step("training", 2, two | small | {"preset": "base", "batch-tokens": 2048, "updates": 1})
    yield Step("headmask_cost", 1, two | small)
    yield Step("importance", 1.5, {**two, "peers": "multipliers,full"})
    yield Step("training", 0.5, two | small | {"preset": "tiny", "batch-tokens": 1000})
    yield Step("memory", 6, {**two, "updates": 2})
    yield Step("training", 2, one | small | {"updates": 2})
    yield Step("decoding", 1.5, one | {"peers": "ctranslate2", "sentences": 400})
    yield Step("decoding", 1, two | {"peers": "marian", "sentences": 200, "batch-tokens": 1000})
    yield Step("processes", 1.5, {"updates": 4, "repeats": 1})


def _cuda() -> Iterator[Step]:
    """Batches that fill a GPU; also ours by `torch.compile`."""
    large = {"batch-tokens": 25000, "repeats": 5}
    trained = large | {"updates": 4, "compile": True}
    yield Step("training", 2, trained | {"preset": "base"})
    yield Step("training", 1, trained | {"preset": "small"})
    yield Step("decoding", 1.5, large | {"peers": "ctranslate2", "compute-types": ("float32",)})
    yield Step("headmask_cost", 0.5, large | {"preset": "base", "precision": "bf16", "updates": 4})
    yield Step("importance", 1, large | {"preset": "base", "peers": "multipliers,full"})
    yield Step("ablation", 1, large | {"heads": 4, "repeats": 3, "warm-up": 0})
    narrow = {"peers": "ctranslate2,marian", "compute-types": ("float16", "int8"), "sentences": 400}
    yield Step("decoding", 0.5, large | narrow)
    sizes = {"experiments": ("bench_base",), "batch-tokens": (25000,), "pieces": ()}
    yield Step("memory", 1.5, {**sizes, "preset": "base", "updates": 2})
    yield Step("planning", 1, {"repeats": 1})


STEPS = {"cpu": tuple(_cpu()), "cuda": tuple(_cuda())}
