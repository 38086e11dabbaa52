"""How fast one model is without a share of its heads, the least important ones, really removed."""

from pathlib import Path
from typing import Any

import torch

from headcount.ablation.pruning_orders import for_ranking, least_important
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.decode import DecodeSettings, SpeedSettings
from headcount.deployment.speed import TimedModel, write_times
from headcount.heads.importance import read_importance
from headcount.model.removal import remove_heads
from headcount.model.transformer import Transformer
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def write_share_speed(
    folder: ModelFolder,
    importance: Path,
    pair: PairFolder,
    ablation: AblationSettings,
    speed: SpeedSettings,
    decode: DecodeSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write how fast the model is with all heads, and without each share of `ablation.timed`.

    A model is named by its percentage of heads removed, rounded up to whole heads; its bytes are
    those of its weights. Raises UserError if the importance is another model's.
    """
    folder.check(pair)
    whole = folder.load(decode.device)
    values = read_importance(importance, folder, whole.grid)
    order = least_important(range(whole.grid.size), for_ranking(values, whole.grid, ablation))
    timed = [_without(whole, order, percent) for percent in (0, *ablation.timed)]
    write_times(timed, pair, speed, decode, out, origin)


def _without(model: Transformer, order: list[int], percent: int) -> TimedModel:
    """The model without the first heads of an order."""
    kept = torch.ones(model.grid.size)
    kept[order[: -(-len(order) * percent // 100)]] = 0
    smaller = remove_heads(model, kept)
    return TimedModel(str(percent), smaller, sum(w.nbytes for w in smaller.parameters()))
