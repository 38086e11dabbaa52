"""Small hand-made files of trained models with other numbers of heads."""

import json
from pathlib import Path

from headmask_files import HeadmaskFiles

from headcount.base.settings.model import ModelSettings

PAIR = "multi.en-de"
LINES = [f"this is sentence number {n} of the test ." for n in range(12)]
WORSE = [line.replace("this is", "is this") for line in LINES]
# Of each line's 9 words all are right, of 8 bigrams 6, of 7 trigrams 5, of 6 fourgrams 4.
BLEU = 100 * (1 * 6 / 8 * 5 / 7 * 4 / 6) ** 0.25
TWO = {"baseline": (LINES, LINES), "baseline-h2": (WORSE, LINES), "baseline-h12": (LINES, LINES)}
HEADS = {"baseline": 4, "baseline-h2": 2, "baseline-h12": 12}


def models_by_heads(folder: Path, runs: dict[str, tuple]) -> dict[str, list[Path]]:
    """Files of runs of a width of 24; translations by run and seed, each wholly right or WORSE."""
    files = HeadmaskFiles(folder)
    files.text(PAIR, 100, 10, {"flickr": LINES})
    models = []
    for run, of_seeds in runs.items():
        for seed, lines in enumerate(of_seeds, start=1):
            key = (PAIR, run, seed)
            files.scores(key, {"flickr": 100.0 if lines is LINES else BLEU}, {"flickr": lines})
            files.curves(key, {10: (2.0, ""), 20: (1.5, ""), 30: (1.0, "")})
            curve = files.of_runs("train", "curves.csv")[-1]
            for step, speed in ((10, 300), (20, 900 * seed), (30, 600)):
                curve.write_text(curve.read_text().replace(f",100,{step},", f",{speed},{step},"))
            models.append(curve.parent / "model" / "model.json")
            models[-1].parent.mkdir()
            model = ModelSettings(preset="tiny", d_model=24, heads=HEADS[run])
            facts = {"model": model.model_dump(mode="json"), "parameters": 12345}
            models[-1].write_text(json.dumps(facts))
    return files.lists() | {"models_by_heads": models}
