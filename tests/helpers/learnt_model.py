"""A small model that has learnt a few sentences by heart, so that its translations end."""

import torch
from small_models import make_model

from headcount.data.lines import clean_lines, write_lines
from headcount.data.vocabulary import Vocabulary
from headcount.model.loss import token_losses
from headcount.model.units import UnitTransformer
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

LEARNT = (0, 1, 10)  # short sentences of the dev set


def learnt(bpe, folder, heads, updates=200, gates=None, d_model=10, lr=0.02, **changes):
    """A model that has seen a few sentences often enough to end them, in a folder.

    With `gates`, it has seen them with its heads, or all its units, times these as often. The
    sentences lie beside it, in learnt.txt. `changes`: of the model's settings.
    """
    lines = list(clean_lines(bpe.parent / "dev.src"))
    write_lines(folder / "learnt.txt", [lines[number] for number in LEARNT])
    size = len(Vocabulary.load(bpe / "src.vocab"))
    sizes = {"src_size": size, "tgt_size": size, "heads": heads, "d_model": d_model}
    model = make_model(joint=True, dropout=0.0, **sizes, **changes)
    learn(model, PairFolder(bpe).read("dev"), model.parameters(), updates, gates, lr)
    facts = PairFolder(bpe).subwords()
    ModelFolder(folder / "model").save(model, dict(model.named_parameters()), facts)
    return folder / "model"


def learn(model, text, weights, updates=200, gates=None, lr=0.02) -> None:
    """Train these weights of a model on the sentences, see `learnt`."""
    whole = gates is None or len(gates) == model.grid.size
    masked = model if whole else UnitTransformer.of(model)
    optimiser = torch.optim.Adam(weights, lr=lr, fused=True)
    for _ in range(updates):
        optimiser.zero_grad()
        loss = token_losses(model, text.batch(LEARNT)).mean()
        if gates is not None:
            loss = loss + token_losses(masked, text.batch(LEARNT), gates).mean()
        loss.backward()
        optimiser.step()
        if loss < 0.1:
            break
