"""Fine-tuning a Hugging Face model on labelled sentence pairs, by the library's own trainer."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headcount.base import command
from headcount.base.files import remove_folder, write_json
from headcount.base.fingerprint import digest
from headcount.base.folders import CLASSIFIER_FILES
from headcount.base.settings.pretrained import FineTuningSettings
from headcount.data.entailment import Example
from headcount.model.machine import pick_device, pick_format
from headcount.store.finished import FinishedSet
from headcount_hf.classifiers.classifier import LONGEST
from headcount_hf.classifiers.classifier_files import read_classifier, training_library


def fine_tune_classifier(
    start: Path,
    pairs: Sequence[Example],
    settings: FineTuningSettings,
    seed: int,
    states: Path,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write `model/` and `fine_tuning.json` into a folder.

    `start`: the folder of a model, whose classifying layer is drawn by the seed unless it has one
    for these labels. After each epoch a state lies in `states`, from which a call goes on whose
    `origin` has the same settings, seed, code, inputs and versions, on the same kind of device. It
    is removed in the end; under an engine the outputs take its place until they are on record
    (workflow/engines/records.py), so that nothing is fine-tuned again. On a CPU the weights follow
    from the seed to the last bit. Raises UserError for a model that cannot be read, and
    EnvironmentFault where library or device is missing.
    """
    device = pick_device(settings.device).type
    mine = states / digest([*(origin.get(part) for part in command.IDENTITY), device])
    finished = FinishedSet(mine / "finished")
    if finished.is_whole():
        print(f"fine-tuned before; outputs taken from {finished.folder}", file=sys.stderr)
    else:
        with finished.written(out) as folder:
            facts = _fine_tune(start, pairs, settings, seed, mine, folder / "model")
            write_json(folder / "fine_tuning.json", facts | {"provenance": origin})
    for state in mine.glob("checkpoint-*"):
        remove_folder(state)
    finished.place(out)
    if not command.has_engine():
        remove_folder(mine)
        if not any(states.iterdir()):  # beside it may lie other runs' states, and other files
            states.rmdir()


def _fine_tune(
    start: Path,
    pairs: Sequence[Example],
    settings: FineTuningSettings,
    seed: int,
    states: Path,
    out: Path,
) -> dict[str, Any]:
    """Fine-tune, or go on from the last of `states`; write model and tokeniser; return facts."""
    library = training_library()
    library.set_seed(seed)
    names = sorted({pair.label.lower() for pair in pairs})
    tokeniser, model = read_classifier(start, names)
    rows = _encoded(pairs, tokeniser, model.config.label2id)
    trainer = library.Trainer(
        model=model,
        args=_arguments(library, settings, seed, states, len(rows), model.config.hidden_size),
        train_dataset=rows,
        data_collator=library.DataCollatorWithPadding(tokeniser),
    )
    done = trainer.train(resume_from_checkpoint=_last_state(states))
    model.save_pretrained(out, max_shard_size="100GB")
    tokeniser.save_pretrained(out)
    for path in out.iterdir():  # others depend on the tokeniser, and none of them is needed
        if path.name not in CLASSIFIER_FILES:
            path.unlink()
    return {"pairs": len(rows), "labels": names, "updates": done.global_step}


def _encoded(
    pairs: Sequence[Example], tokeniser: Any, numbers: dict[str, int]
) -> list[dict[str, Any]]:
    """Return the pairs as the library's trainer takes them; `numbers`: of the labels."""
    texts = [pair.first for pair in pairs], [pair.second for pair in pairs]
    encoded = tokeniser(*texts, truncation=True, max_length=LONGEST)
    return [
        {name: values[place] for name, values in encoded.items()}
        | {"labels": numbers[pair.label.lower()]}
        for place, pair in enumerate(pairs)
    ]


def _arguments(
    library: Any, settings: FineTuningSettings, seed: int, states: Path, pairs: int, width: int
) -> Any:
    """Return arguments of the library's trainer: nothing is reported, and only states are saved."""
    updates = -(-pairs // settings.batch) * settings.epochs
    device = pick_device(settings.device)
    told = library.TrainingArguments(
        output_dir=str(states),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        learning_rate=settings.peak_lr,
        lr_scheduler_type="linear",
        warmup_steps=round(settings.warmup * updates),
        weight_decay=0.01,
        bf16=pick_format(settings.precision, device, width) == "bf16",
        use_cpu=device.type == "cpu",
        seed=seed,
        save_strategy="epoch",
        save_total_limit=1,
        logging_steps=max(1, updates // 100),
        report_to="none",
    )
    told._n_gpu = min(1, told.n_gpu)  # of several it would take a batch each
    return told


def _last_state(states: Path) -> str | None:
    """Return the newest state that was saved whole; none at the beginning."""
    whole = (path.parent for path in states.glob("checkpoint-*/trainer_state.json"))
    return str(max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default="")) or None
