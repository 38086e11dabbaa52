"""Small hand-made files of models trained with other dropouts, and with masked heads."""

import json
from pathlib import Path

from headmask_files import HeadmaskFiles, masking_rows

PAIR = "multi.en-de"
LINES = ["one sentence of the test .", "and one more of them ."]
TESTS = ("flickr", "mscoco")
# By run: dropout, dev loss of two seeds, BLEU of two seeds on the first test set; on the second it
# is 10 lower.
RUNS = {
    "baseline": (0.0, (2.0, 2.2), (30.0, 32.0)),
    "baseline-d0.1": (0.1, (1.9, 1.9), (31.0, 33.0)),
    "baseline-d0.3": (0.3, (1.7, 1.9), (33.0, 36.0)),
    "random-2": (0.0, (1.9, 2.0), (31.0, 34.0)),
    "random-3-d0.1": (0.1, (1.8, 1.9), (32.0, 36.0)),
}
MASKS = {"random-2": [1.0, 1, 0, 0, 0, 0], "random-3-d0.1": [0.5] * 6}


def models_by_dropout(folder: Path) -> dict[str, list[Path]]:
    """Files of `RUNS`, seeds 1 and 2; of the first baseline dev loss is lowest at the end.

    Validations stand at updates 10, 20 and 30; after the lowest dev loss follow none or one in
    `baseline`, two and one in the others. random-3-d0.1 was to wait for two, the others had no
    patience.
    """
    files = HeadmaskFiles(folder)
    files.text(PAIR, 100, 10, dict.fromkeys(TESTS, LINES))
    models = []
    for run, (dropout, losses, bleus) in RUNS.items():
        for seed, (loss, bleu) in enumerate(zip(losses, bleus, strict=True), start=1):
            key = (PAIR, run, seed)
            files.scores(
                key, dict(zip(TESTS, (bleu, bleu - 10), strict=True)), dict.fromkeys(TESTS, LINES)
            )
            files.importance(key, [1.0, 2, 3, 4, 5, 9])
            files.masks(key, {10: MASKS[run], 30: MASKS[run]} if run in MASKS else {})
            files.masking(key, masking_rows(bleu, (10.0, 20.0), [12.0, 14.0]))
            files.curves(key, {10: (2.0, ""), 20: (1.5, ""), 30: (1.0, "")})
            models.append(files.of_runs("train", "model/model.json")[-1])
            models[-1].parent.mkdir()
            update = 30 if key[1:] == ("baseline", 1) else 10 * seed
            facts = {"model": {"dropout": dropout}, "update": update, "dev_loss": loss}
            train = {"patience": 2} if run == "random-3-d0.1" else {}
            facts["provenance"] = {"settings": {"train": train}}
            models[-1].write_text(json.dumps(facts))
    return files.lists() | {"models_by_dropout": models}
