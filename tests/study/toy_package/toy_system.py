"""A small system that can raise, exit or be killed; worker processes import it by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from threadpoolctl import threadpool_info

from solvable.systems.base import Claim, Finding, Parameters, Preset, System

WHERE = "TOY_DIRECTORY"
"""Environment variable with the directory in which tasks log their begin and end."""


class ToyParameters(Parameters):
    size: int = Field(10, ge=1, le=100_000)
    """Number of samples."""
    scale: float = Field(1.0, ge=-10, le=10)
    """Standard deviation of the samples."""
    kind: Literal["mean", "median"] = "mean"
    """Estimator."""
    widths: tuple[int, ...] = (1, 2)
    """A parameter that is a list in JSON."""
    pause: float = Field(0.0, ge=0)
    """Seconds of sleep per task."""
    work: float = Field(0.0, ge=0)
    """Seconds of CPU time per task."""
    megabytes: int = Field(0, ge=0)
    """Memory that a task fills, in megabytes."""
    action: Literal[
        "none", "raise", "exit", "object", "kill once", "kill always", "interrupt", "predict",
        "teacher",
    ] = "none"  # fmt: skip
    """Failure that a task simulates."""


def key_of(rng: np.random.Generator) -> str:
    """Return the name of a task: the key of its random stream."""
    return "-".join(str(int(part)) for part in rng.bit_generator.state["state"]["key"])


def lines(directory: Path, kind: str) -> list[list[str]]:
    """Return name and process of each entry of a log, in order."""
    path = Path(directory) / f"{kind}.log"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def notes(directory: Path, kind: str) -> list[str]:
    """Return the names in a log, in order."""
    return [name for name, _ in lines(directory, kind)]


def check(points) -> Finding:
    replicates = sum(one.replicates for one in points)
    value = np.mean([one.mean("mean") for one in points])
    return Finding(1_000 + float(value), 1_000.0, 50.0, replicates=replicates)


class Toy(System):
    """System that estimates the mean of normal samples."""

    name = "toy"
    title = "Mean of normal samples"
    version = "1"
    parameters = ToyParameters
    presets: ClassVar = {
        "quick": Preset("two sizes", {"size": (10, 20), "scale": (2.0,)}, replicates=2)
    }
    claims = (Claim("mean", "A thousand and the mean are a thousand.", "derived", "any", check),)

    def __init__(self, directory: str | Path | None = None) -> None:
        # Not read in tasks: worker processes outlive a test and keep its environment.
        self.directory = Path(directory or os.environ.get(WHERE, "."))
        self.owner = os.getpid()

    def note(self, kind: str, name: str) -> None:
        """Append a line to a log; processes can share a log because short appends are atomic."""
        with open(self.directory / f"{kind}.log", "a") as log:
            log.write(f"{name} {os.getpid()}\n")

    def measure(self, parameters, rng):
        name = key_of(rng)
        self.note("begun", name)
        self._misbehave(parameters.action, name)
        if parameters.megabytes:
            np.ones(parameters.megabytes << 17)
        time.sleep(parameters.pause)
        end = time.process_time() + parameters.work
        while time.process_time() < end:
            sum(range(1000))
        draws = parameters.scale * rng.standard_normal((parameters.size, 30))
        self.note("ended", name)
        return {
            "mean": draws.mean(),
            "spectrum": np.linalg.eigvalsh(draws.T @ draws)[-3:],
            "threads": max((one["num_threads"] for one in threadpool_info()), default=1),
            "absent": None,
        }

    def _misbehave(self, action: str, name: str) -> None:
        if action == "raise":
            raise ArithmeticError("the toy was asked to fail\nwith two lines")
        if action == "exit":
            raise SystemExit("enough")
        if action == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        begun = notes(self.directory, "begun")
        if action == "kill always" or (action == "kill once" and begun.count(name) == 1):
            if os.getpid() == self.owner:
                raise RuntimeError("this is no worker process: it must not be killed")
            os.kill(os.getpid(), signal.SIGKILL)

    def predict(self, parameters):
        self.note("predicted", str(parameters.size))
        if parameters.action == "predict":
            raise ArithmeticError("no theory here")
        if parameters.action == "object":
            return {"mean": object()}
        return {"mean": 0.0, "spectrum": [float(parameters.size)] * 3, "width": 1.0}

    def teacher(self, parameters, rng):
        if parameters.action == "teacher":
            return {"names": np.array([object()])}
        return {"first": rng.standard_normal(4), "labels": np.array(["a", "b"])}
