"""Error rates of all cross-attention heads beside a forward pass of the same sentences.

Links are made up: the first words of both sides. Wanted: at most twice the forward pass.
"""

from benchmarks.data import add_common_flags, read_data
from benchmarks.measuring import Bench, Contender, Work
from headcount.base import command
from headcount.base.settings.heads import AlignmentSettings
from headcount.base.settings.model import ModelSettings
from headcount.data.trees import cut_tokens
from headcount.data.word_links.links import linked_pair
from headcount.heads.alignment_rates import measure
from headcount.heads.linked_text import linked_text
from headcount.model.transformer import Transformer
from headcount.store.pair_folder import PairFolder
from headcount.training.score import mean_loss


def main() -> None:
    """Measure, and print one table."""
    parser = command.parser(__doc__)
    add_common_flags(parser)
    args, given = parser.parse_args(), AlignmentSettings()
    data, bench, sides = read_data(args.data), Bench(args), PairFolder(args.data).segmenters()
    text = data.dev.part(range(given.sentences))
    pairs = [
        linked_pair("0-0", [cut_tokens(side.decode(ids).split(), side) for side, ids in both], "")
        for both in (zip(sides, ids, strict=True) for ids in zip(text.src, text.tgt, strict=True))
    ]
    halves = linked_text(pairs, sides).halves()
    size = ModelSettings(preset="small"), len(data.words), len(data.words), True
    model = Transformer(*size).to(bench.device).eval()
    heads = [head for head in model.grid.heads() if head.kind == "dec_enc"]
    budget, work = given.batch_tokens, Work({"sentences": float(len(text))}, 0.0)
    forward = Contender("forward", lambda: mean_loss(model, text, budget), work)
    rates = Contender("rates", lambda: measure(model, heads, halves, budget, bool), work)
    print(bench.measure([forward, rates], f"{len(heads)} heads, {len(text)} sentences."))


if __name__ == "__main__":
    command.run(main)
