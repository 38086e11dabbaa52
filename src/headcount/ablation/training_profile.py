"""One model at points of its training: importance, and BLEU as more and more heads are pruned."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from headcount.ablation.ablation import first_test
from headcount.ablation.masked_bleu import SCORE_COLUMNS, MaskedInputs, Point, point_rows
from headcount.ablation.pruning_orders import compared, importance_sets, measured_anew
from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.head_values import COLUMNS as HEAD_COLUMNS
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.store.model_folder import fill, load_weights

COLUMNS = ("update", "test_set", "order", "index", *SCORE_COLUMNS)


def by_update(checkpoints: Sequence[Path], updates: Sequence[int]) -> dict[int, Path]:
    """The checkpoint, <update>.safetensors of one training, of each update.

    Raises UserError for one that is missing, or not named.
    """
    found = {path.stem: path for path in checkpoints}
    wanted = [str(update) for update in updates]
    if sorted(found) != sorted(wanted):
        raise UserError(
            f"--checkpoints: expected one of each update in ablation.updates "
            f"({', '.join(wanted) or 'none'}), found {', '.join(found) or 'none'}; "
            "train.keep_updates says which are kept"
        )
    for path in checkpoints:
        if not path.is_file():
            raise UserError(f"{path}: expected a checkpoint, found no such file; train again")
    return {update: found[str(update)] for update in updates}


def write_training_profile(
    inputs: MaskedInputs,
    checkpoints: Mapping[int, Path],
    settings: AblationSettings,
    importance: ImportanceSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU of the first test set as CSV, a row for each checkpoint and step of pruning.

    Heads go in the order of their importance to that very checkpoint, measured here; deltas, their
    intervals and p are to that checkpoint with all heads. Beside `out` go a JSON of the same name,
    and `<name>_heads.csv`: the importance of every head at every checkpoint. `checkpoints`: files
    of weights by update, see `by_update`; the model of `inputs` tells their shape and the
    vocabularies. Raises UserError, before anything is translated, if one is of another model.
    """
    weights = {update: load_weights(path) for update, path in checkpoints.items()}
    masked = inputs.load()
    for update, path in checkpoints.items():
        fill(masked.model, weights[update], path)
    measure = measured_anew(inputs, importance)
    tests = inputs.read_tests(first_test(settings), settings.sentences)
    ((name, test),) = tests.items()
    grid = masked.grid
    rows, heads, sets = [], [], []
    for update, path in checkpoints.items():
        fill(masked.model, weights[update], path)
        raw = cache(partial(measure, masked.model))
        steps = importance_sets(range(grid.size), compared(raw, grid, settings), settings)
        points = [Point(("importance", index), silent) for index, silent in enumerate(steps)]
        found = point_rows(grid, name, points, masked.compare(test, steps))
        rows += [[update, *row] for row in found]
        heads += [
            [update, *head, "importance", repr(float(value))]
            for head, value in zip(grid.heads(), raw(()), strict=True)
        ]
        sets += steps
    facts = {**masked.describe(tests, sets), "provenance": origin}
    write_result(out, COLUMNS, rows, facts)
    by_head = out.with_name(f"{out.stem}_heads.csv")
    write_result(by_head, ("update", *HEAD_COLUMNS), heads, facts)
