"""Hand-made files of runs that lock heads in, one of which held two."""

from headmask_files import MODEL, HeadmaskFiles

from headcount.base.settings.importance import ImportanceSettings

SETTINGS = {"model": MODEL, "importance": ImportanceSettings()}
PAIR = "multi.en-de"
HELD, IMPT = "impt-2-held40", "impt-2"
OTHERS = [0.1, 0.2, 0.3, 0.4]  # mean slopes of the heads that are never locked in


def add(files, run, seed, masks, slopes=None):
    key = (PAIR, run, seed)
    files.runs.append(key)
    files.masks(key, masks)
    files.slopes(key, slopes or {})


def held_runs(files):
    """Of the heads that are held, 0 and 1, then 4 and 5, one is locked in, then both."""
    masks = dict.fromkeys((20, 40), [1, 1, 0, 0, 0, 0])
    masks |= {70: [0.95, 0.15, 0.9, 0, 0, 0], 100: [1, 0.05, 0.95, 0, 0, 0]}
    masks |= {130: [0.5, 0.5, 1, 0, 0, 0]}
    slopes = {
        step: [(first, 2, 4), (0.1, 5, 1), (third, 2, size), *((x, 5, 1) for x in OTHERS[1:])]
        for step, first, third, size in ((70, 4, 1, 2), (100, 2, -1, 2), (130, 0, 3, 1))
    }
    add(files, HELD, 1, masks, {20: [(9, 9, 9)] * 6, 40: [(9, 9, 7)] * 6} | slopes)
    add(files, HELD, 2, dict.fromkeys((20, 40, 70, 100, 130), [0, 0, 0, 0, 1, 1]))


def locked_runs(folder):
    """A baseline, a run that held heads with two seeds, and one that did not."""
    made = HeadmaskFiles(folder)
    add(made, "baseline", 1, {})
    held_runs(made)
    masks = {30: [0.6, 0.5, 0.4, 0.3, 0.2, 0], 60: [0.9, 0.2, 0.9, 0, 0, 0]}
    add(made, IMPT, 1, masks | {90: [1, 0, 1, 0, 0, 0]})
    return made
