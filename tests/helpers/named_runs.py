"""Runs of tests, by their labels."""

from headcount.base.settings.flags import run_as_flag
from headcount.base.settings.runs import PrunedSettings, expand
from headcount.base.settings.training_runs import RunSettings

_BOTH = {"method": ["random", "importance"]}
_IMPORTANCE = {"method": "importance"}
_TRAINED = [
    "baseline",
    {"method": "baseline", "attention_heads": [1, 2, 3]},
    {"method": "baseline", "dropout": 0.1},
    {**_BOTH, "heads": [0, 1, 2, 3, 4, 5, 6, 9, 17]},
    {**_BOTH, "heads": 2, "dropout": 0.1, "cooldown_updates": [0, 3]},
    {**_BOTH, "heads": [2, 3, 4, 5], "start_update": [2, 4, 9]},
    {**_BOTH, "heads": [2, 3, 4], "cooldown_updates": [1, 3]},
    {**_IMPORTANCE, "heads": [2, 3, 4], "probability": [1.0, 0.3, 0.5], "decay": [0.0, 0.9]},
    {**_IMPORTANCE, "heads": [2, 3, 4], "signed": True, "probability": [1.0, 0.7]},
    {**_IMPORTANCE, "heads": [2, 3, 4], "unit": ["token", "position", "batch"]},
    {**_IMPORTANCE, "heads": [2, 3, 4], "warmup_mask_updates": [2, 4, 5, 9, 200]},
    {**_IMPORTANCE, "heads": 0, "decay": 0.9},
    {**_IMPORTANCE, "heads": 2, "signed": True, "start_update": 9},
    {**_IMPORTANCE, "heads": 2, "unit": "position", "warmup_mask_updates": 9},
    {**_IMPORTANCE, "heads": 2, "unit": "token", "exclude_kind": "enc_self", "cooldown_updates": 3},
    {**_IMPORTANCE, "heads": 3, "probability": [1.0, 0.5], "warmup_mask_updates": 5}
    | {"start_update": 4},
    {**_IMPORTANCE, "heads": 3, "unit": "position", "decay": 0.5},
    {**_IMPORTANCE, "heads": 3, "signed": True, "decay": 0.5, "cooldown_updates": 1},
    {**_IMPORTANCE, "heads": [3, 4], "unit": "token", "warmup_mask_updates": [4, 5]},
    {**_IMPORTANCE, "heads": 4, "probability": 0.3, "decay": 0.9, "warmup_mask_updates": 5},
    {**_IMPORTANCE, "heads": 4, "probability": 0.5, "signed": True, "warmup_mask_updates": 1},
    {**_IMPORTANCE, "heads": 4, "exclude_kind": "enc_self"},
    {"method": "random", "heads": [0, 6], "rescale": "layer", "draw": "sentence", "schedule": "v"},
    {"method": "random", "heads": 1, "cooldown_updates": 1, "rescale": "layer", "scope": "layer"},
    {"method": "random", "heads": 2, "rescale": "layer"},
    {"method": "drophead", "head_probability": [0, 0.2, 0.4]},
]
_SCOPES = {"scope": ["all", "enc_self"]}
_LAMBDAS = [0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 1, 2, 1000]
_PRUNED = [
    {"method": ["gates", "scratch", "importance", "random"], **_SCOPES, "lambda": _LAMBDAS},
    {"method": ["gates", "scratch"], **_SCOPES, "lambda": _LAMBDAS, "from": "none"},
    {"method": ["gates", "random"], "lambda": [0, 0.1, 1]}
    | {"from": {"method": "random", "heads": [2, 6]}},
    {"method": "subset", **_SCOPES, "heads": [*range(1, 18)]},
    {"method": "subset", "scope": ["ffn", "layers", "units"], "heads": 3},
    {"method": "gates", "scope": "units", "lambda": [0.02, 0.7], "price": ["unit", "flops"]},
]
RUNS = {
    run.label: run
    for kind, entries in ((RunSettings, _TRAINED), (PrunedSettings, _PRUNED))
    for run in map(kind.model_validate, expand(entries))
}


def run_flag(label: str) -> list[str]:
    """Return the flag of a run for `train` and `prune`."""
    return ["--run", run_as_flag(RUNS[label])]
