"""Metrics beside BLEU of one experiment, and the files of scores that some have."""

import json
import os
from collections.abc import Iterable, Mapping

from engines.records import own_content
from plan.layout import Wildcards

from headcount.base.settings.flags import as_flags
from headcount.base.settings.metrics import ExperimentMetric, MetricSettings
from headcount.base.settings.section import check_own_file


class Metrics:
    """The metrics of one experiment by their names."""

    def __init__(self, settings: Mapping[str, ExperimentMetric]):
        self._metrics = settings
        self.names = [*settings]
        self.of_masks = [name for name, metric in settings.items() if metric.command]

    def check_files(self, jobs: Iterable[Wildcards], settings: str) -> None:
        """Raise UserError for a missing file. `jobs`: pair, run, seed and test of each."""
        given = [metric.files for metric in self._metrics.values() if metric.files]
        for w in jobs if given else ():
            for files in given:
                check_own_file(files.format(**w), settings)

    def masked(self, path: str) -> list[str]:
        """Return the tables of masked translations beside `path`, by other metrics, and facts."""
        return [f"{path}.{name}{end}" for name in self.of_masks for end in (".csv", ".json")]

    def masked_flags(self) -> list[str]:
        """Return the metrics that score masked translations, as a flag."""
        keys = {*MetricSettings.model_fields}
        given = {name: self._metrics[name].model_dump(include=keys) for name in self.of_masks}
        return ["--metrics", json.dumps(given)] if given else []

    def flags(self, w: Wildcards) -> list[str]:
        """Return a metric's settings, and the file of its scores with its content, if it has one.

        The content is a flag so that another file makes the job run again in either engine.
        """
        metric = self._metrics[w["metric"]]
        if metric.command:
            return as_flags(metric, *MetricSettings.model_fields)
        path = metric.files.format(**dict(w.items()))
        content = own_content(path) if os.path.isfile(path) else ""  # missing in a dry plan only
        return ["--scores", path, "--sha256", content, *as_flags(metric, "scale")]
