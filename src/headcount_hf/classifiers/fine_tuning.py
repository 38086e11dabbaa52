"""Fine-tuning a Hugging Face model on labelled sentence pairs, by the library's own trainer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headcount.base.files import write_json
from headcount.base.folders import CLASSIFIER_FILES
from headcount.base.settings.pretrained import FineTuningSettings
from headcount.data.entailment import Example
from headcount.model.machine import pick_device, pick_format
from headcount.training.training_run import Session
from headcount_hf.classifiers.classifier_files import CLASSIFIER, LONGEST, read_classifier
from headcount_hf.pretrained.library import of_hugging_face


def fine_tune_classifier(
    start: Path, pairs: Sequence[Example], session: Session, out: Path
) -> None:
    """Write `model/` and `fine_tuning.json` into a folder."""
    with session.unfinished(out) as (states, folder):
        if states:
            checkpoints = states.folder / "kept"
            made = folder / "model"
            facts = _fine_tune(start, pairs, session.train, session.seed, checkpoints, made)
            write_json(folder / "fine_tuning.json", facts | {"provenance": session.origin})


def _fine_tune(
    start: Path,
    pairs: Sequence[Example],
    settings: FineTuningSettings,
    seed: int,
    states: Path,
    out: Path,
) -> dict[str, Any]:
    """Fine-tune, or resume from the last of `states`, write the model, and return facts."""
    of_hugging_face("accelerate", CLASSIFIER)  # the trainer of the library needs it
    library = of_hugging_face("transformers", CLASSIFIER)
    library.set_seed(seed)
    names = sorted({pair.label.lower() for pair in pairs})
    tokeniser, model = read_classifier(start, names)
    texts = [pair.first for pair in pairs], [pair.second for pair in pairs]
    encoded = tokeniser(*texts, truncation=True, max_length=LONGEST)
    encoded["labels"] = [model.config.label2id[pair.label.lower()] for pair in pairs]
    rows = [dict(zip(encoded, row, strict=True)) for row in zip(*encoded.values(), strict=True)]
    whole = (path.parent for path in states.glob("checkpoint-*/trainer_state.json"))
    last = max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    trainer = library.Trainer(
        model=model,
        args=_arguments(library, settings, seed, states, len(rows), model.config.hidden_size),
        train_dataset=rows,
        data_collator=library.DataCollatorWithPadding(tokeniser),
    )
    done = trainer.train(resume_from_checkpoint=last and str(last))
    model.save_pretrained(out, max_shard_size="100GB")
    tokeniser.save_pretrained(out)
    for path in out.iterdir():  # other files are not needed
        if path.name not in CLASSIFIER_FILES:
            path.unlink()
    return {"pairs": len(rows), "labels": names, "updates": done.global_step}


def _arguments(
    library: Any, settings: FineTuningSettings, seed: int, states: Path, pairs: int, width: int
) -> Any:
    """Return arguments of the library's trainer, which reports nothing and saves only states."""
    updates = -(-pairs // settings.batch) * settings.epochs
    device = pick_device(settings.device)
    arguments = library.TrainingArguments(
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
    arguments._n_gpu = min(1, arguments.n_gpu)  # it would take a batch on every GPU
    return arguments
