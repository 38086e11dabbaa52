"""Attention heads in neural machine translation; the names below are for Python programs.

Each is fetched when it is asked for, so that `import headcount` takes no time.
docs/guides/python.md shows them at work.
"""

import importlib

_HOMES = {
    "load": "headcount.library.model",
    "import_pretrained": "headcount.library.model",
    "hook": "headcount_hf.door.hooked_lines",
    "Model": "headcount.library.model",
    "HookedSeq2Seq": "headcount_hf.hooks.hooked_seq2seq",
    "best_heads": "headcount.heads.alignment",
    "measure_importance": "headcount.heads.importance",
    "DecodeSettings": "headcount.base.settings.decode",
    "ImportanceSettings": "headcount.base.settings.heads",
    "UserError": "headcount.base.errors",
    "EnvironmentFault": "headcount.base.errors",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'headcount' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
