"""A small system that workers can import: a mean of Gaussian samples, slow or faulty on request."""

import os
import time
from typing import ClassVar

from pydantic import Field

from solvable.systems.base import Claim, Finding, Parameters, Preset, System


class ToyParameters(Parameters):
    samples: int = Field(10, ge=2, le=10_000)
    """Number of samples."""
    pause: float = Field(0.0, ge=0, le=10)
    """Seconds that a task takes."""
    fault: float = Field(0.0, ge=0, le=1)
    """Probability that a task raises."""
    shift: float = 0.0
    """Mean of the samples."""


def check(points):
    return Finding(float(points[0].mean("error")), 0.0, 10.0, replicates=points[0].replicates)


class Toy(System):
    """Mean of Gaussian samples."""

    name = "toy"
    title = "Mean of Gaussian samples"
    version = "1"
    parameters = ToyParameters
    presets: ClassVar = {"quick": Preset("three sizes", {"samples": (10, 20, 40)}, 2)}
    claims = (Claim("small", "The error is small.", "derived", "Loose.", check),)

    def measure(self, parameters, rng):
        if log := os.environ.get("TOY_LOG"):
            with open(log, "a") as file:
                file.write("task\n")
        time.sleep(parameters.pause)
        if rng.random() < parameters.fault:
            raise ArithmeticError("asked to fail\nwith a second line")
        draws = parameters.shift + rng.standard_normal(parameters.samples)
        return {"error": float(draws.mean() ** 2), "draws": draws[:3], "nothing": None}

    def predict(self, parameters):
        return {"error": 1 / parameters.samples + parameters.shift**2}

    def teacher(self, parameters, rng):
        return {"first": rng.standard_normal(3)}


system = Toy()
