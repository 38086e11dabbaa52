"""A small model that has learnt a few sentences by heart, so that its translations end."""

import torch
from small_models import make_model

from headcount.data.lines import clean_lines, write_lines
from headcount.data.vocabulary import Vocabulary
from headcount.model.loss import token_losses
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

LEARNT = (0, 1, 10)  # short sentences of the dev set


def learnt(bpe, folder, heads, updates=200, gates=None, d_model=10):
    """A model that has seen a few sentences often enough to end them, in a folder.

    With `gates`, it has seen them with its heads times these as often. The sentences lie beside
    it, in learnt.txt.
    """
    lines = list(clean_lines(bpe.parent / "dev.src"))
    write_lines(folder / "learnt.txt", [lines[number] for number in LEARNT])
    text = PairFolder(bpe).read("dev")
    size = len(Vocabulary.load(bpe / "src.vocab"))
    model = make_model(
        joint=True, src_size=size, tgt_size=size, heads=heads, dropout=0.0, d_model=d_model
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02, fused=True)
    for _ in range(updates):
        optimiser.zero_grad()
        loss = token_losses(model, text.batch(LEARNT)).mean()
        if gates is not None:
            loss = loss + token_losses(model, text.batch(LEARNT), gates).mean()
        loss.backward()
        optimiser.step()
        if loss < 0.1:
            break
    facts = PairFolder(bpe).subwords()
    ModelFolder(folder / "model").save(model, dict(model.named_parameters()), facts)
    return folder / "model"
