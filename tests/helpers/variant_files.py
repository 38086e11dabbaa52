"""Small hand-made files of trainings that choose the heads to mask in several ways."""

from pathlib import Path

from headmask_files import HeadmaskFiles

PAIR = "multi.en-de"
LINES = ["one sentence of the test .", "and one more of them ."]
TESTS = ("flickr", "mscoco")
IMPT, SIGNED = "impt-2", "impt-2-signed"
# By run, of two seeds: lowest dev loss, seconds, BLEU on the first test set; on the second it is 10
# lower.
RUNS = {
    "baseline": ((2.0, 2.2), (100, 200), (30.0, 32.0)),
    "random-2": ((1.9, 2.0), (110, 180), (31.0, 34.0)),
    IMPT: ((2.2, 2.6), (150, 260), (29.0, 29.0)),
    SIGNED: ((1.75, 1.9), (140, 300), (32.0, 36.0)),
}
# Shares of updates by interval, which end at updates 20 and 60; where there are any, the mean slope
# and its deviation of each head.
MASKS = {
    ("random-2", 1): ([0.5, 0.5, 0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5, 0.5, 0.5]),
    ("random-2", 2): ([0.5, 0.5, 0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5, 0.5, 0.5]),
    (IMPT, 1): ([1, 1, 0, 0, 0, 0], [1, 0.5, 0.5, 0, 0, 0]),
    (IMPT, 2): ([1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]),
    (SIGNED, 1): ([0] * 6, [0, 1, 0, 0, 0, 0]),
    (SIGNED, 2): ([0] * 6, [0, 1, 0, 0, 0, 0]),
}
_HARM = [(1, 0)] * 2 + [(-1, 0)] * 4
_ONE = [(1, 0)] + [(-1, 0)] * 5
SLOPES = {
    (IMPT, 1): (
        [(2, 2), (-1, 2), (-1, 0), (1, 0), (0, 0), (-1, 0)],
        [(1, 0), (-2, 0), (1, 0), (0, 0), (0, 0), (3, 0)],
    ),
    (IMPT, 2): (_HARM, _HARM),
    (SIGNED, 1): ([(1, 0)] * 6, _ONE),
    (SIGNED, 2): ([(1, 0)] * 6, _ONE),
}
STEPS = (20, 60)


def variants(folder: Path) -> dict[str, list[Path]]:
    """Files of `RUNS`, seeds 1 and 2; the first has its lowest dev loss at update 20."""
    files = HeadmaskFiles(folder)
    files.text(PAIR, 100, 10, dict.fromkeys(TESTS, LINES))
    for run, (losses, seconds, bleus) in RUNS.items():
        for seed, bleu in enumerate(bleus, start=1):
            key = (PAIR, run, seed)
            scores = dict(zip(TESTS, (bleu, bleu - 10), strict=True))
            files.scores(key, scores, dict.fromkeys(TESTS, LINES))
            masks, slopes = MASKS.get((run, seed), ()), SLOPES.get((run, seed), ())
            files.masks(key, dict(zip(STEPS, masks, strict=False)))
            found = [[(*of_head, 1) for of_head in heads] for heads in slopes]
            files.slopes(key, dict(zip(STEPS, found, strict=False)))
            lowest = losses[seed - 1]
            dev = (lowest, lowest + 1)[:: 1 if seed == 1 else -1]
            _curves(files, dev, seconds[seed - 1])
    lists = files.lists()
    return lists | {"variants": lists["trained_runs"]}


def _curves(files: HeadmaskFiles, dev: tuple[float, float], seconds: float) -> None:
    """Two validations of the run that was added last; half of the seconds lie before the first."""
    head = "step,epoch,train_loss,dev_loss,lr,tokens_per_s,seconds,first_pass_loss"
    times = (seconds / 2, seconds)
    rows = [
        f"{step},0,2,{loss},0.1,100,{time},"
        for step, loss, time in zip(STEPS, dev, times, strict=True)
    ]
    path = files.of_runs("train", "curves.csv")[-1]
    path.write_text("\n".join([head, *rows]) + "\n")
