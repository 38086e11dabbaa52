"""Write the attention of one head on your own sentences, for scripts/attention_map.py to draw."""

from headcount.base.addresses import KINDS, Head
from headcount.base.command import Flags, flag, path, script
from headcount.base.settings.section import Compute
from headcount.heads.attention_map import write_attention
from headcount.store.model_folder import open_model


@script(
    "--model",
    "--bpe",
    "--source",
    flag("--kind", "attention type", choices=KINDS, default="enc_self"),
    flag("--layer", "counted from 0", type=int),
    flag("--head", "counted from 0", type=int),
    path("[--target]", "their translations; without: the model's own"),
    flag("--level", "units to join", choices=("subword", "word"), default="word"),
    out="JSON to write",
)
def main(args: Flags, compute: Compute) -> None:
    head, texts = Head(args.kind, args.layer, args.head), (args.source, args.target)
    model, pair = open_model(args, compute.threads)
    origin = args.origin(model.files, pair.files(), *texts, compute=None)
    write_attention(model, pair, head, texts, args.level, compute, args.out, origin)
