"""`xpe export lm_eval RUN`: the files that lm-evaluation-harness would have written.

Numbers are those of the run; nothing is computed anew but what the harness logs and we do not:
filtered replies and the hash of a task.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from xpe.compare import Finished, find_run
from xpe.data.documents import Documents
from xpe.errors import ConfigError, DataError, unknown
from xpe.records import answer_of, canonical
from xpe.report import write_json, write_lines
from xpe.tables import keys_of
from xpe.types import Answer, Generate, Generated, LogLikelihood, Retrieve, Rolling, Scored

FORMATS = ("lm_eval",)
_UNSAFE = re.compile(r"[\"<>:/|\\?*\[\]]+")


def export_command(words: Sequence[str]) -> int:
    """Write the files of a run in another program's format; `output=FOLDER` says where to."""
    plain = [word for word in words if "=" not in word]
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    if len(plain) != 2 or settings.keys() - {"output"}:
        raise ConfigError("expected: xpe export lm_eval RUN [output=FOLDER]")
    if plain[0] not in FORMATS:
        raise unknown("format", plain[0], FORMATS)
    run = find_run(plain[1])
    for path in export(run, Path(settings.get("output") or run.folder / plain[0])):
        print(path)
    return 0


def export(run: Finished, output: Path) -> list[Path]:
    """Write `results_<time>.json` and `samples_<task>_<time>.jsonl`; return their paths.

    As there, they go to a folder of `output` that is named after the model.

    Raises
    ------
    DataError
        If the samples of the run were not logged.
    """
    made = Export(run)
    folder = output / made.model_sanitized
    paths = [folder / f"results_{made.time}.json"]
    hashes = {}
    for task in run.config.leaves:
        lines = list(made.lines(task))
        told = (line[k] for line in lines for k in ("doc_hash", "prompt_hash", "target_hash"))
        hashes[task.name] = _sha("".join(told))
        paths.append(folder / f"samples_{task.name}_{made.time}.jsonl")
        texts = (json.dumps(_sanitized(line), ensure_ascii=False, default=str) for line in lines)
        write_lines(paths[-1], [text + "\n" for text in texts])
    write_json(paths[0], made.document | {"task_hashes": hashes})
    return paths


@dataclass(frozen=True)
class Export:
    """A run in the harness's words."""

    run: Finished

    @property
    def found(self) -> Mapping[str, Any]:
        """The result document of the run."""
        return self.run.results

    @cached_property
    def time(self) -> str:
        """When the run began, as the harness puts it into file names."""
        return datetime.fromisoformat(self.found["started"]).isoformat().replace(":", "-")

    @cached_property
    def model_name(self) -> str:
        """What the config calls the model."""
        args = self.found["config"]["model_args"]
        names = (args.get(key) for key in ("pretrained", "model", "path"))
        return str(next(filter(None, names), None) or self.found["config"]["model"])

    @property
    def model_sanitized(self) -> str:
        """The model's name as the name of a folder."""
        return _UNSAFE.sub("__", self.model_name)

    # --- results -------------------------------------------------------------------------

    @cached_property
    def document(self) -> dict[str, Any]:
        """The result file, all but the hashes of tasks."""
        results = {name: self._task_row(name) for name in self.found["results"]}
        groups = {name: self._group_row(name) for name in self.found["groups"]}
        bare = {
            name: {"alias": self._alias(name), "name": name}
            for name in self.found["group_subtasks"]
            if name not in groups
        }
        return {
            "results": {**results, **groups, **bare},
            **({"groups": groups} if groups else {}),
            "group_subtasks": self.found["group_subtasks"],
            "configs": {name: self.found["configs"][name] for name in sorted(results)},
            "versions": dict(sorted(self.found["versions"].items())),
            "n-shot": {name: self.found["n-shot"].get(name) or 0 for name in sorted(results)},
            "higher_is_better": self._directions(),
            "n-samples": self.found["n-samples"],
            **self._facts(),
        }

    def _task_row(self, name: str) -> dict[str, Any]:
        size = self.found["n-samples"][name]["effective"]
        head = {"alias": self._alias(name), "name": name, "sample_len": size}
        return head | _rows(self.found["results"][name])

    def _group_row(self, name: str) -> dict[str, Any]:
        estimates = self.found["groups"][name]
        sizes = [self.found["n-samples"][task]["effective"] for task in self._leaves(name)]
        counts = {_key(key): estimate["n"] for key, estimate in estimates.items()}
        head = {"alias": self._alias(name), "name": name, "sample_len": sum(sizes)}
        return head | _rows(estimates) | {"sample_count": counts}

    def _leaves(self, group: str) -> list[str]:
        below = self.found["group_subtasks"]
        return [
            leaf
            for member in below[group]
            for leaf in (self._leaves(member) if member in below else [member])
        ]

    def _alias(self, name: str) -> str:
        return str(self.found["configs"][name].get("display_name") or name)

    def _directions(self) -> dict[str, dict[str, bool | None]]:
        stated: dict[str, dict[str, bool | None]] = {
            name: {key.split(",")[0]: better for key, better in row.items()}
            for name, row in self.found["higher_is_better"].items()
        }
        for group in self.found["group_subtasks"]:
            rows = [stated[leaf] for leaf in self._leaves(group)]
            names = dict.fromkeys(name for row in rows for name in row)
            ways = {name: {row[name] for row in rows if name in row} for name in names}
            stated[group] = {n: way.pop() if len(way) == 1 else None for n, way in ways.items()}
        return dict(sorted(stated.items()))

    def _facts(self) -> dict[str, Any]:
        """What the harness says of model, machine and prompts; null for what we do not know."""
        settings, tokenizer = self.found["config"], self.found.get("tokenizer") or {}
        system = self.run.config.system_instruction
        template = tokenizer.get("chat_template")
        environment = self.found["environment"]
        seeds = {k: v for k, v in settings.items() if k.endswith("_seed")}
        return {
            "config": {
                "model": settings["model"],
                "model_args": settings["model_args"],
                "batch_size": settings["model_args"].get("batch_size"),
                "batch_sizes": [],
                "device": settings["model_args"].get("device"),
                "use_cache": None,
                "limit": settings.get("limit"),
                "bootstrap_iters": settings["bootstrap_iters"],
                "gen_kwargs": settings.get("gen_kwargs"),
                **seeds,
            },
            "git_hash": self.found["git_hash"],
            "date": datetime.fromisoformat(self.found["started"]).timestamp(),
            "pretty_env_info": json.dumps(environment, ensure_ascii=False),
            "transformers_version": environment.get("transformers"),
            "lm_eval_version": f"xpe {environment.get('xpe')}",
            "upper_git_hash": None,
            **{
                f"tokenizer_{name}_token": tokenizer.get(f"{name}_token", ["null", "None"])
                for name in ("pad", "eos", "bos")
            },
            "eot_token_id": tokenizer.get("eot_token_id"),
            "max_length": tokenizer.get("max_length"),
            "model_source": settings["model"],
            "model_name": self.model_name,
            "model_name_sanitized": self.model_sanitized,
            "system_instruction": system,
            "system_instruction_sha": _sha(system) if system else None,
            "fewshot_as_multiturn": self.run.config.fewshot_as_multiturn,
            "chat_template": template,
            "chat_template_sha": _sha(template) if template else None,
            "total_evaluation_time_seconds": str(self.found["duration_s"]),
        }

    # --- samples -------------------------------------------------------------------------

    def lines(self, task: Any) -> Iterator[dict[str, Any]]:
        """Yield a task's samples: filter by filter, in the order of documents."""
        logged = self.run.lines(task.name)
        for key, evaluator in keys_of(
            tuple(self.run.config.evaluators[task.name].values())
        ).items():
            for doc_id in sorted(logged):
                line = logged[doc_id]
                answer = answer_of(line, task.name, f"{task.name}, document {doc_id}")
                yield self._line(task, evaluator, key, answer, line)

    def _line(
        self, task: Any, evaluator: Any, key: str, answer: Answer, line: Mapping[str, Any]
    ) -> dict[str, Any]:
        target = _target(task, answer)
        arguments, resps = _asked(answer), _said(answer)
        items = _items(evaluator, answer, line["measured"].get(key, {}))
        results = evaluator.results(answer) if hasattr(evaluator, "results") else None
        return {
            "doc_id": answer.sample.doc_id,
            "doc": answer.sample.doc,
            "target": target,
            "arguments": arguments,
            "resps": resps,
            "filtered_resps": [r[0] for r in resps] if results is None else results.value,
            "filter": evaluator.filter,
            "metrics": list(items),
            "doc_hash": line["doc_hash"],
            "prompt_hash": line["prompt_hash"],
            "target_hash": _sha(str(target)),
            **items,
        }


def _rows(estimates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for key, estimate in estimates.items():
        stderr = estimate["stderr"]
        rows[_key(key)] = estimate["value"]
        rows[_key(key, "_stderr")] = "N/A" if stderr is None else stderr
    return rows


def _key(key: str, ending: str = "") -> str:
    metric, _, name = key.partition(",")
    return f"{metric}{ending},{name or 'none'}"


def _target(task: Any, answer: Answer) -> Any:
    """Return the target as the task's template gives it: not yet an index where it is a text."""
    texts = getattr(task, "texts", None)
    if texts is None or texts.doc_to_target is None:
        return answer.sample.target
    try:
        return texts.target(Documents([answer.sample.doc], task.name, "", "").record(0))
    except DataError:
        return answer.sample.target


def _asked(answer: Answer) -> list[list[Any]]:
    """Return the arguments of each request, one a continuation; repeats are one request."""
    found: list[list[Any]] = []
    for exchange in answer.exchanges:
        match exchange.request:
            case Generate(prompt=prompt) as request:
                kwargs = {
                    "until": list(request.stop),
                    "max_gen_toks": request.max_tokens,
                    "do_sample": request.temperature > 0,
                    "temperature": request.temperature,
                }
                one = [_text(prompt), kwargs]
                found += [] if one in found else [one]
            case LogLikelihood(context=context, continuations=continuations):
                found += [[_text(context), continuation] for continuation in continuations]
            case Rolling(text=text):
                found.append([text])
            case Retrieve(query=query):
                found.append([query])
    return found


def _said(answer: Answer) -> list[list[Any]]:
    """Return the responses to each request, by repeat."""
    replies = [exchange.reply for exchange in answer.exchanges]
    texts = [reply.text for reply in replies if isinstance(reply, Generated)]
    if texts:
        return [texts]
    rolling = any(isinstance(e.request, Rolling) for e in answer.exchanges)
    scored = [reply for reply in replies if isinstance(reply, Scored)]
    if rolling:
        return [[sum(reply.log_likelihoods)] for reply in scored]
    return [
        [[value, greedy]]
        for reply in scored
        for value, greedy in zip(reply.log_likelihoods, reply.greedy, strict=True)
    ]


def _items(evaluator: Any, answer: Answer, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metric values of a sample: the harness's items, else the numbers measured."""
    if hasattr(evaluator, "items"):
        try:
            return {name: _plain(item) for name, item in evaluator.items(answer).items()}
        except Exception:  # noqa: BLE001 - counted as invalid in the run
            return {}
    names = {metric.name for metric in evaluator.metrics}
    return {name: value for name, value in measured.items() if name in names}


def _plain(item: Any) -> Any:
    if hasattr(item, "prediction"):
        return [list(item.references), item.prediction]
    return list(item) if isinstance(item, tuple) else item


def _sanitized(line: Mapping[str, Any]) -> dict[str, Any]:
    """Write a line as the harness writes it to a file: replies and target as text."""
    arguments = {
        f"gen_args_{i}": {f"arg_{j}": arg for j, arg in enumerate(asked)}
        for i, asked in enumerate(line["arguments"])
    }
    return {
        **line,
        "arguments": arguments,
        "resps": _texts(line["resps"]),
        "filtered_resps": _texts(line["filtered_resps"]),
        "target": str(line["target"]),
    }


def _texts(value: Any) -> Any:
    return [_texts(one) for one in value] if isinstance(value, (list, tuple)) else str(value)


def _text(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else canonical(prompt)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
