"""Write the attention of one head on sentences of your own, for scripts/attention_map.py to draw.

Source sentences stand one a line in a file; targets beside them, or the model's own translations.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.addresses import KINDS, Head
from headcount.base.settings.flags import read_flags
from headcount.base.settings.section import Compute
from headcount.heads.attention_map import write_attention
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and write the weights as JSON."""
    parser = command.parser(__doc__, "--model", "--bpe", "--source", out="JSON to write")
    parser.add_argument("--kind", choices=KINDS, default="enc_self", help="kind of attention")
    parser.add_argument("--layer", required=True, type=int, help="counted from 0")
    parser.add_argument("--head", required=True, type=int, help="counted from 0")
    parser.add_argument("--target", type=Path, help="their translations; without: the model's own")
    parser.add_argument("--level", choices=("subword", "word"), default="word", help="what to join")
    args, settings = read_flags(parser, Compute)
    head, texts = Head(args.kind, args.layer, args.head), (args.source, args.target)
    model, pair = open_model(args, settings.threads)
    files = [*model.files, *pair.files(), *filter(None, texts)]
    origin = command.provenance("scripts/attention.py", {}, None, files)
    write_attention(model, pair, head, texts, args.level, settings, args.out, origin)


if __name__ == "__main__":
    command.run(main)
