"""Fine-tuning a Hugging Face model on labelled sentence pairs, by the library's own trainer."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headcount.base import command
from headcount.base.files import whole_folder, write_json
from headcount.base.fingerprint import digest
from headcount.base.folders import CLASSIFIER_FILES
from headcount.base.settings.classifiers import FineTuningSettings
from headcount.classifiers.classifier import LONGEST
from headcount.classifiers.classifier_files import read_classifier, training_library
from headcount.data.entailment import Example
from headcount.model.machine import pick_device


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
    `origin` has the same settings, seed, code, inputs and versions; it is removed in the end. On a
    CPU the weights follow from the seed to the last bit. Raises UserError for a model that cannot
    be read, EnvironmentFault where library or device is missing.
    """
    library = training_library()
    library.set_seed(seed)
    mine = states / digest([origin.get(part) for part in command.IDENTITY])
    names = sorted({pair.label.lower() for pair in pairs})
    tokeniser, model = read_classifier(start, names)
    numbers = model.config.label2id
    texts = [pair.first for pair in pairs], [pair.second for pair in pairs]
    encoded = tokeniser(*texts, truncation=True, max_length=LONGEST)
    rows = [
        {name: values[place] for name, values in encoded.items()}
        | {"labels": numbers[pair.label.lower()]}
        for place, pair in enumerate(pairs)
    ]
    trainer = library.Trainer(
        model=model,
        args=_arguments(library, settings, seed, mine, len(rows)),
        train_dataset=rows,
        data_collator=library.DataCollatorWithPadding(tokeniser),
    )
    done = trainer.train(resume_from_checkpoint=_last_state(mine))
    with whole_folder(out / "model") as folder:
        model.save_pretrained(folder, max_shard_size="100GB")
        tokeniser.save_pretrained(folder)
        for path in folder.iterdir():  # others depend on the tokeniser, and none of them is needed
            if path.name not in CLASSIFIER_FILES:
                path.unlink()
    facts = {"pairs": len(rows), "labels": names, "updates": done.global_step}
    facts["provenance"] = origin
    write_json(out / "fine_tuning.json", facts)
    _drop(states, mine)


def _drop(states: Path, mine: Path) -> None:
    """Remove the states of a finished run: all of a job's; by hand, others' may lie beside them."""
    shutil.rmtree(states if command.has_engine() else mine, ignore_errors=True)
    if states.is_dir() and not any(states.iterdir()):
        states.rmdir()


def _arguments(
    library: Any, settings: FineTuningSettings, seed: int, states: Path, pairs: int
) -> Any:
    """What the library's trainer is told: nothing is reported, and only states are saved."""
    updates = -(-pairs // settings.batch) * settings.epochs
    told = library.TrainingArguments(
        output_dir=str(states),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        learning_rate=settings.peak_lr,
        lr_scheduler_type="linear",
        warmup_steps=round(settings.warmup * updates),
        weight_decay=settings.weight_decay,
        bf16=settings.precision == "bf16",
        use_cpu=pick_device(settings.device).type == "cpu",
        seed=seed,
        save_strategy="epoch",
        save_total_limit=1,
        logging_steps=max(1, updates // 100),
        report_to="none",
    )
    told._n_gpu = min(1, told.n_gpu)  # of several it would take a batch each
    return told


def _last_state(states: Path) -> str | None:
    """The newest state that was saved whole; none at the beginning."""
    whole = (path.parent for path in states.glob("checkpoint-*/trainer_state.json"))
    return str(max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default="")) or None
