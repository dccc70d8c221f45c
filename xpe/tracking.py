"""MLflow as a sink. Local files are the truth; a tracker that fails warns and loses nothing."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic.dataclasses import dataclass

from xpe.data.cache import runs_dir
from xpe.registry import STRICT

if TYPE_CHECKING:
    from mlflow import MlflowClient

PARENT = "XPE_MLFLOW_PARENT"
"""Environment variable with the id of the sweep's parent run."""

_LONGEST_PARAM = 6000
_LONGEST_TAG = 8000
_BATCH = 100
_ROWS = 1000


@dataclass(frozen=True, config=STRICT)
class MlflowTracker:
    """Logs a run to MLflow: parameters, metrics with their errors, data sets, artifacts.

    Parameters
    ----------
    uri
        The tracking server; None for `mlflow.db` in the runs folder, artifacts beside it.
    experiment
        Name of the experiment; made if it is not there.
    run_name
        Name of the run; None for the name of its folder.
    """

    uri: str | None = None
    experiment: str = "xpe"
    run_name: str | None = None

    cosmetic: ClassVar[frozenset[str]] = frozenset({"uri", "experiment", "run_name"})

    @property
    def store_uri(self) -> str:
        """The tracking URI, absolute whatever the working directory."""
        return self.uri or f"sqlite:///{runs_dir() / 'mlflow.db'}"

    def begin(
        self,
        name: str,
        params: Mapping[str, Any],
        tags: Mapping[str, str],
        run_id: str | None = None,
    ) -> str:
        """Open a run, or reopen `run_id`; returns the id.

        A run of a sweep hangs below the parent whose id is in the environment.
        """
        client = self._client()
        if run_id is not None:
            client.update_run(run_id, status="RUNNING")
            return run_id
        all_tags = {**tags, "mlflow.runName": self.run_name or name}
        if parent := os.environ.get(PARENT):
            all_tags["mlflow.parentRunId"] = parent
        run = client.create_run(self._experiment_id(client), tags=_cut(all_tags))
        new_id: str = run.info.run_id
        self._log_params(client, new_id, flatten(params))
        return new_id

    def finish(self, run_id: str, document: Mapping[str, Any], folder: Path) -> None:
        """Log the metrics, data sets and files of a finished run and close it."""
        from mlflow.entities import Metric

        client = self._client()
        now = int(time.time() * 1000)
        metrics = [Metric(key, value, now, 0) for key, value in metric_values(document)]
        for batch in _batches(metrics, 1000):
            client.log_batch(run_id, metrics=batch)
        self._log_inputs(client, run_id, document)
        self._log_files(client, run_id, document, folder)
        client.set_terminated(run_id, "FINISHED")

    def fail(self, run_id: str, *, killed: bool = False) -> None:
        """Close a run that did not finish; a resumed one is opened again by its id."""
        self._client().set_terminated(run_id, "KILLED" if killed else "FAILED")

    def close(self, run_id: str, *, failed: bool = False) -> None:
        """Close the parent of a sweep; delete it if no job opened a run: all were there before."""
        client = self._client()
        client.set_terminated(run_id, "FAILED" if failed else "FINISHED")
        experiment = client.get_run(run_id).info.experiment_id
        below = f"tags.`mlflow.parentRunId` = '{run_id}'"
        if not failed and not client.search_runs([experiment], below, max_results=1):
            client.delete_run(run_id)

    def _client(self) -> MlflowClient:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        for noisy in ("alembic", "mlflow.store.db.utils"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        from mlflow import MlflowClient

        if self.uri is None:
            # A cold SQLite store that several processes create at once breaks.
            from filelock import FileLock

            runs_dir().mkdir(parents=True, exist_ok=True)
            with FileLock(runs_dir() / ".mlflow.lock"):
                client = MlflowClient(self.store_uri)
                client.search_experiments(max_results=1)
                return client
        return MlflowClient(self.store_uri)

    def _experiment_id(self, client: MlflowClient) -> str:
        from mlflow.exceptions import MlflowException

        found = client.get_experiment_by_name(self.experiment)
        if found is not None:
            return str(found.experiment_id)
        # Without a location of its own, artifacts would follow the working directory.
        location = (runs_dir() / "artifacts").as_uri() if self.uri is None else None
        try:
            return str(client.create_experiment(self.experiment, artifact_location=location))
        except MlflowException:  # another process made it meanwhile
            found = client.get_experiment_by_name(self.experiment)
            if found is None:
                raise
            return str(found.experiment_id)

    def _log_params(self, client: MlflowClient, run_id: str, params: Mapping[str, str]) -> None:
        from mlflow.entities import Param

        short = {k: v for k, v in params.items() if len(v) <= _LONGEST_PARAM}
        for batch in _batches([Param(metric_name(k), v) for k, v in short.items()], _BATCH):
            client.log_batch(run_id, params=batch)
        long = {k: v for k, v in params.items() if len(v) > _LONGEST_PARAM}
        if long:
            client.log_dict(run_id, long, "long_params.json")

    def _log_inputs(self, client: MlflowClient, run_id: str, document: Mapping[str, Any]) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        inputs = [
            DatasetInput(
                Dataset(task, digest[:36], "local", json.dumps({"uri": source})),
                [InputTag("mlflow.data.context", "eval")],
            )
            for task, (source, digest) in document.get("data", {}).items()
        ]
        if inputs:
            client.log_inputs(run_id, inputs)

    def _log_files(
        self, client: MlflowClient, run_id: str, document: Mapping[str, Any], folder: Path
    ) -> None:
        for name in ("results.json", "config.yaml", "overrides.yaml", "forest.png"):
            if (folder / name).exists():
                client.log_artifact(run_id, str(folder / name))
        with tempfile.TemporaryDirectory() as scratch:
            for task in document["results"]:
                source = folder / "samples" / f"{task}.jsonl"
                if source.exists():
                    table = Path(scratch) / f"{task}.parquet"
                    samples_to_parquet(source, table)
                    client.log_artifact(run_id, str(table), "samples")


def metric_values(document: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield `<task>/<metric>` and its `_stderr`, `_ci_low`, `_ci_high`, `_n`, `_n_failed`."""
    for section in ("results", "groups"):
        for task, estimates in document[section].items():
            for key, found in estimates.items():
                name = metric_name(f"{task}/{key.replace(',', '-')}")
                low, high = found["ci"] or (None, None)
                values = {
                    "": found["value"],
                    "_stderr": found["stderr"],
                    "_ci_low": low,
                    "_ci_high": high,
                    "_n": found["n"],
                    "_n_failed": found.get("n_failed"),
                }
                for suffix, value in values.items():
                    if value is not None:
                        yield name + suffix, float(value)


def metric_name(name: str) -> str:
    """Map a name to what MLflow takes: `pass@1` to `pass_at_1`, `pass^2` to `pass_hat_2`."""
    name = name.replace("@", "_at_").replace("^", "_hat_")
    return re.sub(r"[^\w/. :-]", "_", name).strip("/")[:250]


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested settings as dotted keys with text values; lists stay whole, as JSON."""
    flat: dict[str, str] = {}
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            flat |= flatten(item, f"{prefix}{key}.")
        else:
            is_text = isinstance(item, str)
            flat[f"{prefix}{key}"] = (
                item if is_text else json.dumps(item, ensure_ascii=False, default=str)
            )
    return flat


def samples_to_parquet(source: Path, target: Path) -> None:
    """Write a sample file as a Parquet table, a thousand rows at a time.

    Numbers that evaluators measured become columns `<evaluator>.<column>`; nested values are
    JSON text, so that every task has the same plain column types.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with source.open(encoding="utf-8") as lines:
        columns = sorted({name for line in lines for name in _measured(json.loads(line))})
    schema = pa.schema(
        [("doc_id", pa.int64())]
        + [(name, pa.string()) for name in ("doc", "target", "requests", "replies")]
        + [(name, pa.float64()) for name in columns]
    )
    with source.open(encoding="utf-8") as lines, pq.ParquetWriter(target, schema) as writer:
        while block := list(islice(lines, _ROWS)):
            rows = [_row(json.loads(line), columns) for line in block]
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _row(line: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"doc_id": line["doc_id"]}
    for name in ("doc", "target", "requests", "replies"):
        row[name] = json.dumps(line[name], ensure_ascii=False) if name in line else None
    found = _measured(line)
    return row | {name: found.get(name) for name in columns}


def _measured(line: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"{evaluator}.{column}": float(value)
        for evaluator, columns in line["measured"].items()
        for column, value in columns.items()
        if isinstance(value, (int, float))
    }


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _cut(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value[:_LONGEST_TAG] for key, value in tags.items()}
