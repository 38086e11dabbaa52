"""Draw attention maps: one figure of all sentences in a file that scripts/attention.py wrote."""

import warnings

from headcount.analysis.figures.special import draw_attention
from headcount.analysis.figures.style import save_drawing, use_style
from headcount.base.addresses import Head
from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError, reading
from headcount.base.files import read_json


@script(
    path("--weights", "JSON of scripts/attention.py"),
    flag("--title", "title above the first map; the head by default", default=""),
    out="figure to write: .svg, .pdf or .png",
)
def main(args: Flags) -> None:
    if args.out.suffix not in (".svg", ".pdf", ".png"):
        raise UserError(f"{args.out}: expected a name that ends in .svg, .pdf, .png")
    use_style()
    with reading(args.weights, "scripts/attention.py"):
        file = read_json(args.weights)
        title = args.title or f"{Head(**file['head']).label()}, by {file['level']}"
        drawing = draw_attention(file["maps"], [title, *[""] * (len(file["maps"]) - 1)])
    with warnings.catch_warnings():
        # In SVG text stays text, and the fonts of the reader show it.
        action = "ignore" if args.out.suffix == ".svg" else "error"
        warnings.filterwarnings(action, "Glyph .* missing from font")
        try:
            save_drawing(drawing, args.out, "tight")
        except UserWarning as fault:
            advice = "name a font that has it in matplotlib's font.family, or draw an .svg"
            raise UserError(f"{fault}; {advice}") from None
