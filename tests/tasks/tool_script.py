"""Plays model and judge for a file of conversations; in a process of its own it keeps a log.

`python tool_script.py LOG DATA SYSTEM` prints its address and serves until its input ends. It
writes one line for each question when it comes: the digest of its content. A file LOG.slow
holds a number of questions and the seconds that each one beyond them takes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from xpe.tasks.tool_call import ToolCall

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from fake_server import Call, FakeServer, Said, chat

DIMENSIONS = ("content_accuracy", "completeness", "expression_quality", "format_consistency")
OUT_OF_ORDER = Said({"error": {"message": "out of order"}}, status=500)
DELAY = 0.005


def content_of(call: Call) -> str:
    """A digest of what was asked."""
    return hashlib.sha256(json.dumps(call.body, sort_keys=True).encode()).hexdigest()[:16]


class Script:
    """Answers each pair right, by the messages that it is asked with, and each verdict is 9.

    `broken` may have something else to say; of every `wrong` questions one gets a wrong answer
    and a verdict of its own.
    """

    def __init__(
        self,
        tasks: Sequence[ToolCall],
        broken: Callable[[Call], Said | bool | None] = lambda call: None,
        wrong: int | None = None,
    ) -> None:
        self.right: dict[str, Any] = {}
        self.broken = broken
        self.wrong = wrong
        for task in tasks:
            for conversation in task.conversations.values():
                for pair in conversation.pairs:
                    turn = conversation.turns[pair.at]
                    request = task.request(conversation, pair)
                    self.right[json.dumps(request.prompt)] = (pair.kind, turn)

    def __call__(self, call: Call) -> Said:
        if call.method == "GET":
            return Said({"data": []})
        return self.broken(call) or self._answer(call)

    def _answer(self, call: Call) -> Said:
        number = int(content_of(call), 16)
        wrong = self.wrong is not None and number % self.wrong == 0
        if call.body["model"] == "j":
            return Said(chat(json.dumps(dict.fromkeys(DIMENSIONS, number % 7 if wrong else 9))))
        kind, turn = self.right[json.dumps(call.body["messages"])]
        if kind == 3:
            return Said(chat("?" if wrong else turn.text))
        calls = [] if wrong else [one._asdict() for one in turn.calls]
        if "tools" in call.body:
            return Said(chat("?" if wrong else None, tool_calls=list(map(_native, calls))))
        texts = (json.dumps(one, ensure_ascii=False) for one in calls)
        return Said(chat("\n".join(f"<tool_call>{one}</tool_call>" for one in texts) or "?"))


def _native(call: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    return {
        "id": "c",
        "type": "function",
        "function": {"name": call["name"], "arguments": arguments},
    }


if __name__ == "__main__":
    path, data, system = sys.argv[1:]
    script = Script([ToolCall(name="t", data=data, default_system=system)], wrong=5)
    slow = Path(path + ".slow")
    seen: set[str] = set()

    with Path(path).open("a", buffering=1, encoding="utf-8") as log:

        def logged(call: Call) -> Said:
            said = script(call)
            said.delay = DELAY
            if call.method == "POST":
                seen.add(content_of(call))
                log.write(content_of(call) + "\n")
                number, seconds = map(float, slow.read_text().split())
                if len(seen) > number:
                    said.delay = seconds
            return said

        with FakeServer(logged) as server:
            print(server.url, flush=True)
            sys.stdin.read()
