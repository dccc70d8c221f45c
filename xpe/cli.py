"""The command line. The first word without `=` is a command; all else is `run`.

Commands are imported on use: `--help`, `--version` and `ls` import neither Hydra nor torch.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import NamedTuple, NoReturn

from xpe import __version__
from xpe.errors import UnknownNameError, XpeError, nearest

INTERRUPTED = 130


class Command(NamedTuple):
    """Where a command's function lies (`module:function`, words to exit code), and its help."""

    home: str
    usage: str
    what: str


COMMANDS = {
    "run": Command("xpe._job:run", "run [-m] [KEY=VALUE …]", "evaluate; `run` may be left out"),
    "ls": Command("xpe._listing:ls", "ls [models|tasks|evaluators|metrics]", "what there is"),
    "validate": Command(
        "xpe._validate:validate", "validate [KEY=VALUE …]", "check config and data, show prompts"
    ),
    "rescore": Command(
        "xpe.rescore:rescore_command", "rescore RUN [KEY=VALUE …]", "score a run's replies again"
    ),
    "merge": Command(
        "xpe.merge:merge_command",
        "merge RUN RUN … [output=FOLDER]",
        "the run that shards (shard=1/4) make up",
    ),
    "export": Command(
        "xpe.export:export_command",
        "export lm_eval RUN [output=FOLDER]",
        "the files that lm-evaluation-harness would write",
    ),
    "compare": Command(
        "xpe._compare:compare_command", "compare RUN RUN …", "differences, paired by document"
    ),
    "power": Command(
        "xpe._compare:power_command", "power delta=0.03 …", "how many samples a comparison needs"
    ),
    "info": Command("xpe._info:info", "info", "versions, extras, folders"),
    "ui": Command("xpe._info:ui", "ui [OPTION …]", "MLflow's user interface on your runs"),
}

HELP = """\
xpe evaluates language models and puts an error bar on every number.

  {commands}

Settings are KEY=VALUE, composed by Hydra from the folders of configs:
  xpe                                          the embedded model on the tasks that ship
  xpe task=tcm_choice limit=20                 one task, its first 20 questions
  xpe 'task=[capitals_en,tcm_choice]'          several tasks
  xpe model=hf model.path=Qwen/Qwen3-0.6B      another model
  xpe num_fewshot=5 seed.fewshot=7             few-shot examples, and their draw
  xpe -m model=smollm2,hf num_fewshot=0,5      a sweep: every combination
  xpe --cfg job task=tcm_choice                print the finished config, run nothing

Exit codes: 0 complete, 1 failed while running, 2 wrong config or data, 3 partial, 130 interrupted.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; errors of ours are one message."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        with _terminated_like_interrupted():
            return _dispatch(words)
    except XpeError as error:
        print(f"xpe: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("xpe: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough: `xpe ls | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Have SIGTERM, by which schedulers end a job, close logs and the MLflow run too."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _dispatch(words: list[str]) -> int:
    first = words[0] if words else ""
    if first in {"--help", "-h", "help"}:
        print(help_text(), end="")
        return 0
    if first == "--version":
        print(f"xpe {__version__}")
        return 0
    if first and "=" not in first and not first.startswith(("-", "~", "+")):
        command, rest = _command(first), words[1:]
    else:
        command, rest = COMMANDS["run"], words
    if any(word in {"--help", "-h"} for word in rest):
        print(f"xpe {command.usage}\n  {command.what}\n\n{help_text()}", end="")
        return 0
    module, _, name = command.home.partition(":")
    function: Callable[[Sequence[str]], int] = getattr(import_module(module), name)
    return function(rest)


def help_text() -> str:
    """Return the help: commands and examples."""
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = [f"xpe {c.usage:<{width}}  {c.what}" for c in COMMANDS.values()]
    return HELP.format(commands="\n  ".join(lines))


def _command(word: str) -> Command:
    if word in COMMANDS:
        return COMMANDS[word]
    hints = nearest(word, COMMANDS)
    hint = f" Did you mean {' or '.join(repr(h) for h in hints)}?" if hints else ""
    raise UnknownNameError(
        f"unknown command {word!r}.{hint} Known: {', '.join(COMMANDS)}; settings are KEY=VALUE"
    )


if __name__ == "__main__":
    sys.exit(main())
