from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from few_settings import few_settings
from tests.support.prefork import FILTERS, Prefork, prefork

PROBE = '''\
from __future__ import annotations

import os
import time
from typing import Literal

import numpy as np
from pydantic import Field

from solvable.systems.base import (
    Claim, Figure, Finding, NotTestable, Parameters, Preset, Reference, Series, System,
)


class ProbeParameters(Parameters):
    samples: int = Field(10, ge=2, le=100_000)
    """Number n of samples."""
    noise: float = Field(1.0, ge=0.0, le=10.0)
    """Standard deviation of a sample, in units of the signal."""
    kind: Literal["mean", "median"] = "mean"
    """Estimator."""
    widths: tuple[int, ...] = (1, 2)
    """Widths of the layers."""
    pause: float = Field(0.0, ge=0.0, le=10.0)
    """Seconds of sleep per task."""
    bias: float = 0.0
    """Bias of the samples, which makes the claim fail."""
    fault: float = Field(0.0, ge=0.0, le=1.0)
    """Probability that a task raises an error."""


def error_agrees(points):
    if min(one.replicates for one in points) < 2:
        return NotTestable("Needs at least two replicates.")
    ratio = np.concatenate([one.values("error") / one.predicted("error") for one in points])
    # chi^2 with one degree of freedom: variance 2, so five standard errors.
    return Finding(
        float(ratio.mean()), 1.0, 5 * float(np.sqrt(2 / ratio.size)), replicates=ratio.size
    )


class Probe(System):
    """Mean of Gaussian samples."""

    name = "probe"
    title = "Mean of Gaussian samples"
    version = "1"
    parameters = ProbeParameters
    references = (
        Reference("gauss1809", "@book{gauss1809, author = {Gauss, C. F.}, year = {1809}}"),
    )
    presets = {
        "quick": Preset("three sizes", {"samples": [10, 40, 160]}, 4),
        "slow": Preset("slow tasks", {"samples": list(range(10, 20)), "pause": [0.15]}, 3),
    }
    claims = (
        Claim("error-is-variance", "The squared error is s² / n.", "derived", "5 s.e.",
              error_agrees, power=0.9),
    )

    def measure(self, parameters, rng):
        key = "-".join(str(int(part)) for part in rng.bit_generator.state["state"]["key"])
        if "PROBE_LOG" in os.environ:
            with open(os.environ["PROBE_LOG"], "a") as log:
                log.write(key + "\\n")
        time.sleep(parameters.pause)
        if rng.random() < parameters.fault:
            raise ArithmeticError("the probe was asked to fail\\nwith two lines")
        draws = parameters.bias + parameters.noise * rng.standard_normal(parameters.samples)
        return {"error": float(draws.mean() ** 2), "draws": draws[:3]}

    def predict(self, parameters):
        return {
            "error": parameters.noise**2 / parameters.samples,
            "draws": [0.0, 0.0, 0.0],
            "spectrum": np.linspace(2.0, 1.0, 30),
        }

    def figures(self, points):
        x = [one.parameters["samples"] for one in points]
        return [Figure("error", "Squared error", "samples n", "squared error", [
            Series("theory", x, [float(one.predicted("error")) for one in points]),
            Series("measured", x, [float(one.mean("error")) for one in points], kind="points",
                   error=[float(one.standard_error("error")) for one in points]),
        ], x_scale="log", y_scale="log")]
'''


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """Return a directory with an installed package that provides the system `probe`."""
    site = tmp_path_factory.mktemp("site")
    (site / "probe_system.py").write_text(PROBE)
    info = site / "probe_system-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: probe-system\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[solvable.systems]\nprobe = probe_system:Probe\n")
    return site


@pytest.fixture(scope="session")
def forks() -> Iterator[Prefork]:
    """Return a process whose forks run the program without importing the libraries again."""
    with prefork() as process:
        yield process


class Terminal:
    """Runner of the program in separate processes, in its own directory."""

    def __init__(
        self, forks: Prefork, site: Path, cwd: Path, *first: str, columns: str | None = "100"
    ) -> None:
        self.forks = forks
        self.site = site
        self.cwd = cwd
        self.first = first
        self.log = cwd / "probe.log"
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH")))),
            "PROBE_LOG": str(self.log),
            "OPENBLAS_NUM_THREADS": "1",
            **FILTERS,
        }
        self.environment.pop("COLUMNS", None)
        if columns is not None:
            self.environment["COLUMNS"] = columns
        self.usual_environment = dict(self.environment)

    def __call__(self, *words: object, **options) -> subprocess.CompletedProcess[str]:
        # What Python reads from options and environment when it starts needs a start.
        columns = {"COLUMNS": self.environment.get("COLUMNS")}
        if not options and self.environment | columns == self.usual_environment | columns:
            return self.forks.run(
                [*self.first, *map(str, words)], self.cwd, self.environment, timeout=120
            )
        return subprocess.run(
            [sys.executable, "-m", "solvable", *self.first, *map(str, words)],
            cwd=self.cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
            **options,
        )

    def start(self, *words: object, **options) -> subprocess.Popen[str]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen(
            [sys.executable, "-m", "solvable", *self.first, *map(str, words)],
            cwd=self.cwd,
            env=self.environment,
            text=True,
            encoding="utf-8",
            start_new_session=True,
            **options,
        )

    def logged(self) -> list[str]:
        """Return the key of the random stream of each replicate that was started."""
        return self.log.read_text().split() if self.log.exists() else []


@pytest.fixture(scope="session")
def terminal_in(forks, site) -> Callable[..., Terminal]:
    """Return a function that makes a terminal in a given directory."""
    return partial(Terminal, forks, site)


@pytest.fixture
def solvable(terminal_in, tmp_path) -> Terminal:
    return terminal_in(tmp_path)


@pytest.fixture(scope="module")
def finished(terminal_in, tmp_path_factory):
    """Return a terminal with a finished run of the quick preset of `probe` in the directory `run`."""
    terminal = terminal_in(tmp_path_factory.mktemp("finished"))
    answer = terminal("run", "probe", "--output", "run", "--workers", 1, "--json")
    assert answer.returncode == 0, answer.stderr
    terminal.answer = answer
    return terminal


@pytest.fixture
def few() -> Iterator[None]:
    """Tune the methods that `learn` compares less, in this process."""
    with few_settings():
        yield


@pytest.fixture
def call(site, tmp_path, monkeypatch, capfd):
    """Return a function that calls the program in this process: status, output, error output."""
    from solvable.cli import main

    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        status = main([str(word) for word in words])
        return (status, *capfd.readouterr())

    return call
