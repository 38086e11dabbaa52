"""Beam search: this project beside CTranslate2 and HF generate, with the very same weights.

`--model` is a folder that training wrote. Before anything is timed, each peer must give our
log-probabilities for the references, and our translations where no length penalty enters: with one
they differ by right, for ours divides by ((5 + length) / 6)^α, the peers by length^α.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.ctranslate2_export import export
from benchmarks.data import add_common_flags, read_data
from benchmarks.flops import forward_flops
from benchmarks.marian import copy_weights, marian_logits, marian_model
from benchmarks.measuring import Contender, Work, alternate, ceilings, machine_facts, table
from benchmarks.peers import add_peers_flag, chosen_peers, load_peer
from headcount.base import command
from headcount.base.errors import HeadcountError, UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Batch, BatchPlan, Ids, ParallelText
from headcount.data.vocabulary import BOS, EOS, PAD, Vocabulary
from headcount.model.transformer import Transformer
from headcount.runs.checkpoint import load_model
from headcount.runs.decode import translate
from headcount.runs.machine import pick_device, use_threads
from headcount.runs.score import score_targets
from headcount.runs.translation import check_vocabularies

PEERS = ("ctranslate2", "ctranslate2-int8", "marian")
NATS = 1e-3  # by which one token's log-probability may differ between two engines in fp32
AGREEING = 0.99  # share of sentences that two engines in fp32 must translate alike


@dataclass(frozen=True)
class Task:
    """What every engine has to do, and whether it is to be checked against ours."""

    model: Transformer
    words: Vocabulary
    text: ParallelText
    settings: DecodeSettings
    device: torch.device

    @property
    def longest_output(self) -> int:
        """Longest output with its EOS that ours allows for any of the sentences."""
        longest = max(len(ids) for ids in self.text.src)
        return int(self.settings.max_length_factor * longest) + self.settings.max_length_extra


@dataclass(frozen=True)
class Engine:
    """One way to translate the sentences of a task, and to score their references."""

    name: str
    translate: Callable[[float], list[Ids]]  # given α, the best translations without EOS
    score: Callable[[], list[float]] | None  # nats of each reference; None for another arithmetic


def our_engine(task: Task) -> Engine:
    """This project's decoder."""

    def run(alpha: float) -> list[Ids]:
        settings = task.settings.model_copy(update={"length_penalty": alpha})
        return [found.ids for found in translate(task.model, task.text.src, settings)]

    return Engine("ours fp32", run, lambda: _our_scores(task, task.text))


def ctranslate2_engine(task: Task, folder: Path, compute_type: str, workers: int) -> Engine:
    """CTranslate2 on an exported model; `workers` batches side by side share the threads."""
    translator = load_peer("ctranslate2").Translator(
        str(folder),
        device=task.device.type,
        compute_type=compute_type,
        inter_threads=workers,
        intra_threads=task.settings.threads // workers,
    )
    sources = [task.words.pieces(ids) for ids in task.text.src]
    banned = [[piece] for piece in task.words.pieces((PAD, BOS))]

    def run(alpha: float) -> list[Ids]:
        found = translator.translate_batch(
            sources,
            beam_size=task.settings.beam,
            length_penalty=alpha,
            max_batch_size=task.settings.batch_tokens,
            batch_type="tokens",
            max_decoding_length=task.longest_output,
            min_decoding_length=0,
            suppress_sequences=banned,
        )
        return [task.words.ids(result.hypotheses[0]) for result in found]

    def score() -> list[float]:
        targets = [task.words.pieces(ids) for ids in task.text.tgt]
        scored = translator.score_batch(
            sources, targets, max_batch_size=task.settings.batch_tokens, batch_type="tokens"
        )
        return [-sum(result.log_probs) for result in scored]

    side = f", {workers} batches side by side" if workers > 1 else ""
    exact = score if compute_type == "float32" else None
    return Engine(f"CTranslate2 {_short(compute_type)}{side}", run, exact)


def marian_engine(task: Task) -> Engine:
    """HF generate on a MarianMTModel with our weights, batch by batch as our plan cuts them."""
    marian = marian_model(task.model.settings, len(task.words)).to(task.device).eval()
    copy_weights(task.model, marian)
    plan = BatchPlan(task.text, max(task.settings.batch_tokens, task.text.longest), seed=0)
    batches = [batch.to(task.device) for batch in plan.in_order()]

    @torch.inference_mode()
    def run(alpha: float) -> list[Ids]:
        found: list[Ids] = [[]] * len(task.text)
        for batch in batches:
            rows = _generate(marian, batch, task, alpha).tolist()
            for number, row in zip(batch.ids, rows, strict=True):
                found[number] = row[1 : row.index(EOS)] if EOS in row else row[1:]
        return found

    return Engine("HF generate fp32", run, lambda: _marian_scores(marian, batches, len(task.text)))


def engines(task: Task, peers: Sequence[str], folder: Path) -> list[Engine]:
    """Ours first, then the peers."""
    found = [our_engine(task)]
    if any(name.startswith("ctranslate2") for name in peers):
        export(task.model, task.words, task.words, folder)
    for name in peers:
        if name == "marian":
            found.append(marian_engine(task))
            continue
        kind = "int8" if name.endswith("int8") else "float32"
        found.append(ctranslate2_engine(task, folder, kind, 1))
        if task.settings.threads > 1 and task.device.type == "cpu":
            found.append(ctranslate2_engine(task, folder, kind, task.settings.threads))
    return found


def check_agreement(task: Task, found: Sequence[Engine]) -> None:
    """Print how far each engine is from ours. Raises HeadcountError where one is not the same.

    References: the largest difference in log-probability, per token. Translations without length
    penalty: the share that is the same, and the mean log-probability that our model gives them.
    """
    ours, references = found[0].translate(0.0), found[0].score()
    print(f"{found[0].name}: {_mean_score(task, ours):.4f} nats a translation")
    for engine in found[1:]:
        theirs = engine.translate(0.0)
        same = sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)
        line = f"{engine.name}: {_mean_score(task, theirs):.4f} nats, {same:.1%} as ours"
        if engine.score is not None:
            gap = max(
                abs(a - b) / (len(ids) + 1)
                for a, b, ids in zip(references, engine.score(), task.text.tgt, strict=True)
            )
            line += f", references within {gap:.1e} nats a token"
            if gap > NATS or same < AGREEING:
                raise HeadcountError(f"{line}; expected the same model: this is a bug")
        print(line)


def contender(task: Task, engine: Engine) -> Contender:
    """The engine at the length penalty of the task; runs it once for the length of its output."""
    alpha = task.settings.length_penalty
    lengths = [
        (len(source) + 1, len(ids) + 1)
        for source, ids in zip(task.text.src, engine.translate(alpha), strict=True)
    ]
    units = {"sentences": float(len(lengths)), "tokens": float(sum(t for _, t in lengths))}
    sizes = task.model.settings
    flops = forward_flops(sizes, len(task.words), lengths, task.settings.beam)
    return Contender(engine.name, lambda: engine.translate(alpha), Work(units, flops))


def main() -> None:
    """Check, measure, and print one table."""
    args = _flags().parse_args()
    peers = chosen_peers(args.peers, PEERS)
    use_threads(args.threads)
    task = _task(args)
    ceiling = ceilings(task.device)
    print(machine_facts(task.device, ceiling), end="\n\n")
    with tempfile.TemporaryDirectory() as folder:
        found = engines(task, peers, Path(folder))
        torch.set_num_threads(args.threads)  # making a CTranslate2 translator changes it
        check_agreement(task, found)
        contenders = [contender(task, engine) for engine in found]
        times = alternate(contenders, args.repeats, args.warm_up, task.device, args.threads)
    sizes = task.model.settings
    print(
        f"\nBeam {args.beam}, α {args.length_penalty}, {len(task.text)} sentences, "
        f"{sizes.encoder_layers} + {sizes.decoder_layers} layers of {sizes.d_model}.\n"
    )
    print(table(contenders, times, ceiling["fp32"], found[0].name, args.repeats))


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    add_common_flags(parser)
    add_peers_flag(parser, PEERS)
    parser.add_argument("--model", required=True, type=Path, help="folder of the model")
    parser.add_argument("--sentences", type=int, default=1014, help="of the dev set, at most")
    parser.add_argument("--beam", type=int, default=5, help="hypotheses kept per sentence")
    parser.add_argument("--length-penalty", type=float, default=0.6, help="α of every engine")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="budget of one batch")
    return parser


def _task(args: argparse.Namespace) -> Task:
    check_vocabularies(args.model, args.data)
    data = read_data(args.data)
    settings = DecodeSettings(
        beam=args.beam,
        length_penalty=args.length_penalty,
        batch_tokens=args.batch_tokens,
        device=args.device,
        threads=args.threads,
    )
    device = pick_device(args.device)
    model = load_model(args.model).to(device)
    text = ParallelText(data.dev.src[: args.sentences], data.dev.tgt[: args.sentences])
    text = ended_by_themselves(model, text, settings)
    return Task(model, data.words, text, settings, device)


def ended_by_themselves(
    model: Transformer, text: ParallelText, settings: DecodeSettings
) -> ParallelText:
    """The pairs whose translation the model ends, with the length penalty and without.

    Others go on up to the longest output allowed, which is another one in every engine.
    """
    ended = [bool(ids) for ids in text.src]
    for alpha in {0.0, settings.length_penalty}:
        search = settings.model_copy(update={"length_penalty": alpha})
        found = translate(model, text.src, search)
        ended = [before and not each.capped for before, each in zip(ended, found, strict=True)]
    kept = [number for number, each in enumerate(ended) if each]
    if not kept:
        raise UserError("--model: it ends no translation by itself; name one trained for longer")
    if len(kept) < len(text):
        print(f"left out: {len(text) - len(kept)} sentences that the model does not end\n")
    return ParallelText([text.src[i] for i in kept], [text.tgt[i] for i in kept])


def _our_scores(task: Task, text: ParallelText) -> list[float]:
    return score_targets(task.model, text, task.settings.batch_tokens).tolist()


def _mean_score(task: Task, translations: list[Ids]) -> float:
    """Mean log-probability, in nats, that our model gives to translations; larger is better."""
    losses = _our_scores(task, ParallelText(task.text.src, translations))
    return -sum(losses) / len(losses)


def _generate(marian: nn.Module, batch: Batch, task: Task, alpha: float) -> Tensor:
    return marian.generate(
        input_ids=batch.src,
        attention_mask=(batch.src != PAD).long(),
        num_beams=task.settings.beam,
        do_sample=False,
        early_stopping=True,  # once as many have ended as the beam is wide, as ours does
        length_penalty=alpha,
        max_new_tokens=task.longest_output,
        suppress_tokens=[PAD, BOS],
    )


@torch.inference_mode()
def _marian_scores(marian: nn.Module, batches: Sequence[Batch], count: int) -> list[float]:
    losses = [0.0] * count
    for batch in batches:
        words = marian_logits(marian, batch).log_softmax(-1)
        chosen = words.gather(2, batch.tgt_out[..., None]).squeeze(2)
        sums = chosen.masked_fill(batch.tgt_out == PAD, 0.0).sum(1)
        for number, value in zip(batch.ids, sums.tolist(), strict=True):
            losses[number] = -value
    return losses


def _short(compute_type: str) -> str:
    return "fp32" if compute_type == "float32" else compute_type


if __name__ == "__main__":
    command.run(main)
