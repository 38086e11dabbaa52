"""Hand-made files of three runs of two seeds, one of which collapsed."""

from headmask_files import MODEL, HeadmaskFiles, masking_rows

from headcount.base.settings.importance import ImportanceSettings

PAIR = "multi.en-de"
SETTINGS = {"model": MODEL, "importance": ImportanceSettings()}
LINES = [f"this is sentence number {n} of the test ." for n in range(12)]
WORSE = [line.replace("this is", "is this") for line in LINES]
RUNS = {"baseline": (30.0, 32.0), "random-1": (31.0, 34.0), "impt-2": (29.0, 28.0)}


def add_run(
    files, run, bleu, lines, importance, masks=None, curve=None, groups=(10.0, 20.0), test="flickr"
):
    files.scores(run, {test: bleu}, {test: lines})
    files.importance(run, importance, first=importance, second=importance[::-1])
    files.masks(run, masks or {})
    files.slopes(run, {})
    files.curves(run, curve or {10: (2.0, ""), 20: (1.0, "")})
    files.masking(run, masking_rows(bleu, groups, [12.0, 14.0]), test)


def three_runs(folder):
    """Two seeds of three runs of one pair; impt-2 keeps masking the same head."""
    made = HeadmaskFiles(folder)
    made.text(PAIR, 29000, 1014, {"flickr": LINES})
    values = {"baseline": [1.0, 2, 3, 4, 5, 9], "random-1": [2.0] * 5 + [8.0], "impt-2": [1.0] * 6}
    for run, bleus in RUNS.items():
        for seed, bleu in enumerate(bleus, start=1):
            lines = WORSE if run == "impt-2" else LINES
            masks, curve, groups = None, None, (10.0, 20.0)
            if run == "random-1":
                masks = {10: [0.6, 0.4, 0, 0, 0, 0], 30: [0.0, 0.1, 0.2, 0.3, 0.4, 0]}
            if run == "impt-2":
                masks = {10: [1.0, 1, 0, 0, 0, 0], 30: [0.95, 0, 0, 0.5, 0.5, 0.05]}
                curve = {10: (9.0, 9.5), 30: (1.0, 1.5)}
                groups = (36.0, 20.0)
            name = (PAIR, run, seed)
            add_run(made, name, bleu, lines, values[run], masks, curve, groups)
    return made
