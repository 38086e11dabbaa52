"""An untrained model and texts to translate with its heads masked, for tests of masking jobs."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import torch
from small_run import segment

from headcount.ablation.masked_bleu import MaskedInputs
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.model import ModelSettings
from headcount.data.bpe import Segmenter
from headcount.data.lines import clean_lines, write_lines
from headcount.data.vocabulary import EOS, Vocabulary
from headcount.model.transformer import Transformer
from headcount.scoring.bleu import score_corpus
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

# Flat order: enc_self.0.0, .0.1, .1.0, dec_self.0.0, .0.1, .0.2, dec_enc.0.0, .0.1.
HEADS = {"enc_self": [2, 1], "dec_self": [3], "dec_enc": [2]}
SIZES = {"encoder_layers": 2, "decoder_layers": 1, "d_model": 24, "d_ff": 32, "d_head": 7}
MODEL = ModelSettings(preset="tiny", heads=HEADS, **SIZES)
DECODE = DecodeSettings(beam=2, max_length_factor=1.0, max_length_extra=3)
DECODE_FLAGS = ("--beam", 2, "--max-length-factor", 1.0, "--max-length-extra", 3)


def masked_inputs(folder: Path) -> MaskedInputs:
    """The model, and dev, test and other: references are its translations, with or without heads.

    Those of dev are made without enc_self.0.1, of other without dec_self.0.2. All of it is made
    once and copied: several files of tests begin with it.
    """
    shutil.copytree(_made(), folder, dirs_exist_ok=True)
    return _inputs(folder)


def _inputs(folder: Path) -> MaskedInputs:
    return MaskedInputs(ModelFolder(folder / "model"), PairFolder(folder / "bpe"), folder, DECODE)


@cache
def _made() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    bpe = segment(folder)
    size = len(Vocabulary.load(bpe / "src.vocab"))
    torch.manual_seed(1)
    model = Transformer(MODEL, size, size, joint=True)
    with torch.no_grad():
        for weight in model.parameters():  # heads that matter
            weight.add_(0.3 * torch.randn_like(weight))
        model.tgt_embedding.weight[EOS] = 0.0  # some word is always likelier than the end
    facts = PairFolder(bpe).subwords()
    ModelFolder(folder / "model").save(model, dict(model.named_parameters()), facts)
    found = _inputs(folder)
    lines = list(clean_lines(folder / "dev.src"))
    for test, part, silent in (
        ("dev", lines[:7], 1),
        ("test", lines[2:8], None),
        ("other", lines[5:], 5),
    ):
        write_lines(folder / f"{test}.src", part)
        mask = np.ones(MODEL.grid.size)
        if silent is not None:
            mask[silent] = 0
        write_lines(folder / f"{test}.tgt", translated(found, test, mask))
    return folder


@cache
def _loaded(inputs: MaskedInputs) -> tuple[Transformer, Segmenter, Segmenter]:
    return inputs.model.load(), *inputs.pair.segmenters()


def translated(inputs: MaskedInputs, test: str, mask: np.ndarray) -> list[str]:
    """A test set under one mask, by a search of its own."""
    model, src, tgt = _loaded(inputs)
    sources = [src.encode(line) for line in clean_lines(inputs.text / f"{test}.src")]
    found = translate(model, sources, DECODE, torch.as_tensor(mask).float())
    return [tgt.decode(translation.ids) for translation in found]


def masked_bleu(inputs: MaskedInputs, test: str, names: str) -> float:
    """BLEU of a test set without the heads of these names."""
    by_name = {head.name(): head for head in MODEL.grid.heads()}
    mask = MODEL.grid.mask(by_name[name] for name in names.split())
    references = list(clean_lines(inputs.text / f"{test}.tgt"))
    return score_corpus(translated(inputs, test, mask), references, "art")[0].score


def folder_flags(inputs: MaskedInputs) -> list:
    """Where the inputs lie, as every masking script is told."""
    folders = {"model": inputs.model.path, "bpe": inputs.pair.path, "text": inputs.text}
    return [word for name, folder in folders.items() for word in (f"--{name}", folder)]
