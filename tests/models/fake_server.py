"""A scripted HTTP server that speaks enough of the OpenAI API, and breaks it on demand."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self


@dataclass
class Said:
    """What to answer: a status with JSON or raw bytes, after `delay` seconds; or none at all."""

    json: object = None
    status: int = 200
    headers: dict = field(default_factory=dict)
    raw: bytes | None = None
    delay: float = 0.0
    reset: bool = False
    short: bool = False  # announces more bytes than it sends
    drip: float = 0.0  # seconds before each byte of the body


@dataclass
class Call:
    """What was asked; `nth` counts equal bodies, from 0."""

    method: str
    path: str
    headers: dict
    body: dict
    nth: int


def chat(content="hello", *, finish="stop", **message):
    """A chat completion with one choice."""
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def last_words(call):
    """What the user said last."""
    return call.body["messages"][-1]["content"] if call.body else ""


class FakeServer:
    """Serves `script(call) -> Said` on a free port of the loopback, in a thread."""

    def __init__(self, script: Callable[[Call], Said]) -> None:
        self.script = script
        self.calls: list[Call] = []
        self.now = self.most = 0
        self._seen: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def posts(self) -> list[Call]:
        return [call for call in self.calls if call.method == "POST"]

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._talk, "127.0.0.1", 0, backlog=1024)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()

    async def _stop(self) -> None:
        self._server.close()
        others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _talk(self, reader, writer) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _one(self, reader, writer) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        text = await reader.readexactly(int(headers.get("content-length", 0)))
        seen = f"{path} {text!r}"
        call = Call(
            method, path, headers, json.loads(text) if text else {}, self._seen.get(seen, 0)
        )
        self._seen[seen] = call.nth + 1
        self.calls.append(call)
        said = self.script(call)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(said.delay)
        finally:
            self.now -= 1
        if said.reset:
            writer.transport.abort()
            return False
        body = said.raw if said.raw is not None else json.dumps(said.json).encode()
        fields = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body) + 10 * said.short),
            **said.headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        head = f"HTTP/1.1 {said.status} X\r\n{lines}\r\n".encode()
        if said.drip:
            await self._drip(writer, head, body, said.drip)
        else:
            writer.write(head + body)
        await writer.drain()
        return not said.short

    async def _drip(self, writer, head: bytes, body: bytes, pause: float) -> None:
        writer.write(head)
        for byte in body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(pause)


if __name__ == "__main__":
    latency = float(sys.argv[1])
    reply = chat("answer")

    def script(call: Call) -> Said:
        return Said(reply, delay=latency)

    with FakeServer(script) as server:
        print(server.url, flush=True)
        sys.stdin.read()
