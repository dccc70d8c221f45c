"""The model kind `openai` beside the bare client with the same transport, and beside lm-eval.

    python tests/bench/bench_openai.py [requests] [rounds]

A server of its own process answers after 50 ms, then after 1 s. Printed are the medians of
alternating rounds: requests a second, wall and CPU seconds of the asking process, and its growth
in memory. lm-eval asks by its `local-chat-completions`, as many at once, where it is installed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from openai import AsyncOpenAI, DefaultAioHttpClient

from xpe.models.openai import OpenAi
from xpe.types import Asked, Generate, Generated, Origin

CONCURRENCY = 128


@contextmanager
def server(latency: float) -> Iterator[str]:
    """Run the scripted server and give its address."""
    script = Path(__file__).parent.parent / "models" / "fake_server.py"
    process = subprocess.Popen(
        [sys.executable, str(script), str(latency)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        yield process.stdout.readline().strip()
    finally:
        process.communicate("")


def ours(url: str, n: int) -> None:
    """Ask through the model kind."""
    model = OpenAi(model="m", base_url=url, concurrency=CONCURRENCY)
    asked = (Asked(Origin("t", i, 0, 0), Generate(f"question {i}")) for i in range(n))
    answered = sum(isinstance(got[1], Generated) for got in model.reply(asked) if got)
    model.close()
    assert answered == n


def bare(url: str, n: int) -> None:
    """Ask through the package, as its documentation shows, with a semaphore."""

    async def main() -> None:
        room = asyncio.Semaphore(CONCURRENCY)
        transport = DefaultAioHttpClient()
        async with AsyncOpenAI(api_key="x", base_url=url, http_client=transport) as client:

            async def one(i: int) -> str | None:
                async with room:
                    got = await client.chat.completions.create(
                        model="m",
                        messages=[{"role": "user", "content": f"question {i}"}],
                        temperature=0.0,
                        max_tokens=256,
                    )
                    return got.choices[0].message.content

            got = await asyncio.gather(*(one(i) for i in range(n)))
            assert got == ["answer"] * n

    asyncio.run(main())


def lm_eval(url: str, n: int) -> None:
    """Ask through lm-eval, as its task loop does."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.api_models import JsonChatStr
    from lm_eval.models.openai_completions import LocalChatCompletion

    address = f"{url}/chat/completions"
    model = LocalChatCompletion(base_url=address, model="m", num_concurrent=CONCURRENCY)
    asked = [[{"role": "user", "content": f"question {i}"}] for i in range(n)]
    settings = {"until": [], "max_gen_toks": 256}
    requests = [
        Instance("generate_until", {}, (JsonChatStr(json.dumps(one)), settings), i)
        for i, one in enumerate(asked)
    ]
    assert model.generate_until(requests) == ["answer"] * n


def sides() -> dict[str, Callable[[str, int], None]]:
    """Return who is measured: lm-eval only where it and what its API models need is installed."""
    found = {"bare client": bare, "xpe": ours}
    if all(importlib.util.find_spec(name) for name in ("lm_eval", "tenacity")):
        logging.getLogger("lm_eval").setLevel(logging.ERROR)
        os.environ["TQDM_DISABLE"] = "1"
        found["lm-eval"] = lm_eval
    else:
        print("lm-eval: not measured; pip install 'lm-eval[api]==0.4.13'")
    return found


def timed(work: Callable[[str, int], None], url: str, n: int) -> tuple[float, float]:
    """Return wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work(url, n)
    return time.perf_counter() - wall, time.process_time() - cpu


def rounds(url: str, n: int, times: int) -> dict[str, tuple[float, float]]:
    """Return the medians of alternating rounds, after one that warms up."""
    who = sides()
    for work in who.values():
        work(url, CONCURRENCY)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in who}
    for _ in range(times):
        for name, work in who.items():
            found[name].append(timed(work, url, n))
    return {
        name: (statistics.median(w for w, _ in runs), statistics.median(c for _, c in runs))
        for name, runs in found.items()
    }


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with server(0.05) as url:
        medians = rounds(url, n, times)
    ideal = n / (-(-n // CONCURRENCY) * 0.05)
    print(f"50 ms, {n} requests, {CONCURRENCY} at once, median of {times}; ideal {ideal:.0f}/s")
    for name, (wall, cpu) in medians.items():
        ratio = medians["xpe"][1] / cpu
        print(f"  {name:11}  {n / wall:5.0f}/s  CPU {cpu:.2f} s  (xpe takes {ratio:.2f}x of it)")
    with server(1.0) as url:
        ours(url, CONCURRENCY)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wall, cpu = timed(ours, url, 1000)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        ideal = -(-1000 // CONCURRENCY) * 1.0
        print(f"1 s, 1000 requests, xpe: {wall:.2f} s = {wall / ideal:.2f}x the ideal", end="")
        print(f", CPU {cpu:.2f} s, peak memory +{grown:.1f} MiB")


if __name__ == "__main__":
    main()
