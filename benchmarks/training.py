"""Training: this project's loop beside HF Marian, torch.nn.Transformer and JoeyNMT.

All see the same batches, as our plan cuts them, with the same sizes, dropout, label smoothing,
fused Adam and clipping. Ours is the project's own trainer with all that it does besides: collating
batches, checking for numbers that are not finite, averaging weights.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.data import BenchData, add_common_flags, read_data, sentence_lengths
from benchmarks.flops import training_flops
from benchmarks.measuring import Bench, Contender, Work, formats
from benchmarks.peers import add_peers_flag, chosen_peers
from benchmarks.peers.joeynmt_model import joeynmt_loss, joeynmt_model
from benchmarks.peers.marian import marian_logits, marian_model
from benchmarks.peers.plain_transformer import PlainTransformer
from headcount.base import command
from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.settings.model import PRESETS, ModelSettings
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import BASELINE, RunSettings
from headcount.data.batches import Batch, BatchPlan
from headcount.data.vocabulary import PAD, Vocabulary
from headcount.model.machine import number_format, pick_device
from headcount.model.transformer import Transformer
from headcount.training.headmask import make_head_mask
from headcount.training.states import StateStore
from headcount.training.train import Trainer

PEERS = {"marian": "transformers", "torch": "torch", "joeynmt": "joeynmt"}
SEED = 1


class RepeatingTrainer(Trainer):
    """The project's trainer, fed with the first batches of one epoch over and over."""

    def repeat(self, updates: int) -> None:
        """From now on, go through the first batches only, one for each update."""
        self._batches = self._again(self.plan.epoch(0)[:updates])

    def run(self, updates: int) -> None:
        """Make that many updates."""
        for _ in range(updates):
            self._update()

    def compile(self) -> None:
        """From the next update on, run the layers by `torch.compile`; the fused loss is not.

        One graph of the encoder and one of the decoder serve batches of any size; a batch of one
        sentence has its own two. Sources and targets may be of one length without a graph for that.
        """
        torch.fx.experimental._config.use_duck_shape = False
        for name in ("encode", "decode"):
            layers = getattr(self.model, name)
            setattr(self.model, name, torch.compile(layers, dynamic=True, fullgraph=True))

    def _again(self, batches: Sequence) -> Iterator[Batch]:
        while True:
            for indices in batches:
                yield self.text.batch(indices, self.device)


def our_trainer(
    data: BenchData,
    model: ModelSettings,
    settings: TrainSettings,
    folder: Path,
    run: RunSettings = BASELINE,
) -> RepeatingTrainer:
    """This project's trainer of a fresh model. It saves nothing; `folder` stays empty."""
    torch.manual_seed(SEED)
    device = pick_device(settings.device)
    ours = Transformer(model, len(data.words), len(data.words), joint=True).to(device)
    states = StateStore(folder, {}, float("inf"))
    mask = make_head_mask(run, model.grid, settings, SEED)
    return RepeatingTrainer(ours, data.train, data.dev, settings, SEED, states, mask)


@dataclass(frozen=True)
class Peer:
    """A peer's model in training mode, and its mean loss per target token of a batch."""

    title: str
    model: nn.Module
    loss: Callable[[Batch], Tensor]


def make_peer(name: str, words: Vocabulary, model: ModelSettings, settings: TrainSettings) -> Peer:
    """A peer of the same sizes with random weights, on the device of the settings."""
    torch.manual_seed(SEED)
    device, smoothing = pick_device(settings.device), settings.label_smoothing
    if name == "marian":
        marian = marian_model(model, len(words)).to(device).train()
        loss = padded_loss(lambda batch: marian_logits(marian, batch), smoothing)
        return Peer("HF Marian", marian, loss)
    if name == "torch":
        plain = PlainTransformer(model, len(words)).to(device).train()
        return Peer("nn.Transformer", plain, padded_loss(plain, smoothing))
    joey = joeynmt_model(model, words, smoothing).to(device).train()
    return Peer("JoeyNMT", joey, joeynmt_loss(joey))


def padded_loss(logits: Callable[[Batch], Tensor], smoothing: float) -> Callable[[Batch], Tensor]:
    """The loss that a user of torch writes: over all positions, padding left out of the mean."""

    def loss(batch: Batch) -> Tensor:
        targets = batch.tgt_out.flatten()
        return functional.cross_entropy(
            logits(batch).flatten(0, 1), targets, ignore_index=PAD, label_smoothing=smoothing
        )

    return loss


def peer_training(
    peer: Peer, batches: Sequence[Batch], settings: TrainSettings
) -> Callable[[], None]:
    """One pass over the batches with the loop that a peer's user writes; an update for each."""
    weights = [weight for weight in peer.model.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(
        weights,
        lr=settings.peak_lr / settings.warmup_updates,
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        fused=True,
    )
    device = weights[0].device

    def run() -> None:
        for batch in batches:
            optimiser.zero_grad(set_to_none=True)
            with number_format(settings.precision, device):
                loss = peer.loss(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, settings.clip_norm)
            optimiser.step()

    return run


def contenders(
    data: BenchData,
    model: ModelSettings,
    settings: TrainSettings,
    updates: int,
    peers: Sequence[str],
    folder: Path,
    compiled: bool,
) -> list[Contender]:
    """Ours first, `compiled` as well if that is asked for, then the peers, in one number format."""
    trainer = our_trainer(data, model, settings, folder)
    trainer.repeat(updates)
    batches = first_batches(data, settings, updates)
    work = work_of(batches, model, len(data.words))
    kind = settings.precision
    found = [Contender(f"ours {kind}", lambda: trainer.run(updates), work, kind)]
    if compiled:
        other = our_trainer(data, model, settings, folder)
        other.compile()
        other.repeat(updates)
        found.append(Contender(f"ours compiled {kind}", lambda: other.run(updates), work, kind))
    for peer in (make_peer(name, data.words, model, settings) for name in peers):
        print(f"{peer.title}: {_trained(peer.model):,} weights, ours {_trained(trainer.model):,}")
        run = peer_training(peer, batches, settings)
        found.append(Contender(f"{peer.title} {kind}", run, work, kind))
    return found


def first_batches(data: BenchData, settings: TrainSettings, updates: int) -> list[Batch]:
    """The batches that our trainer repeats, where it trains.

    Raises UserError if the text has not as many.
    """
    batches = BatchPlan(data.train, settings.batch_tokens, SEED).epoch(0)
    if updates > len(batches):
        raise UserError(
            f"--updates {updates}: the text makes {len(batches)} batches of "
            f"{settings.batch_tokens} tokens; ask for no more, or lower --batch-tokens"
        )
    device = pick_device(settings.device)
    return [data.train.batch(indices, device) for indices in batches[:updates]]


def check_compiler(device: torch.device) -> None:
    """Raise EnvironmentFault where `torch.compile` finds nothing to make code with."""
    from torch._dynamo.exc import TorchDynamoException  # a second and memory, for this alone

    try:
        torch.compile(torch.neg)(torch.ones(2, device=device))
    except TorchDynamoException as fault:
        raise EnvironmentFault(
            f"--compile: torch.compile makes no code here: {str(fault).splitlines()[0]}; install "
            "a C++ compiler such as g++, for a GPU Triton as well, or leave --compile out"
        ) from fault


def work_of(batches: Sequence[Batch], model: ModelSettings, vocabulary: int) -> Work:
    """Real tokens, source and target, of training on these batches, and its operations."""
    lengths = [pair for batch in batches for pair in sentence_lengths(batch)]
    units = {"tokens": float(sum(s + t for s, t in lengths))}
    return Work(units, training_flops(model, vocabulary, lengths))


def main() -> None:
    """Measure, and print one table."""
    args = _flags().parse_args()
    peers = chosen_peers(args.peers, PEERS)
    data = read_data(args.data)
    bench = Bench(args)
    if args.compile:
        check_compiler(bench.device)
    model = ModelSettings(preset=args.preset, norm=args.norm)
    with tempfile.TemporaryDirectory() as folder:
        all_of_them = []
        for precision in formats(args.precision, bench.ceiling):
            settings = TrainSettings(
                precision=precision,
                device=args.device,
                threads=args.threads,
                batch_tokens=args.batch_tokens,
            )
            all_of_them += contenders(
                data, model, settings, args.updates, peers, Path(folder) / precision, args.compile
            )
        title = f"Training, {args.preset}: {args.updates} updates of {args.batch_tokens} tokens."
        print(bench.measure(all_of_them, title))


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    add_common_flags(parser)
    add_peers_flag(parser, PEERS)
    parser.add_argument("--preset", default="small", choices=PRESETS, help="sizes of all models")
    parser.add_argument("--norm", default="pre", choices=("pre", "post"), help="Marian's is post")
    parser.add_argument("--precision", default="both", choices=("fp32", "bf16", "both"))
    parser.add_argument("--compile", action="store_true", help="ours by torch.compile as well")
    parser.add_argument("--updates", type=int, default=8, help="updates of one run")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="budget of one batch")
    return parser


def _trained(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


if __name__ == "__main__":
    command.run(main)
