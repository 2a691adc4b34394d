"""A direction of larger variance hides in noise until the sample is large enough.

Inputs are Gaussian with covariance I + s v v^T. The leading principal component has a non-zero
overlap with v once n exceeds d / s².
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from solvable.systems.base import (
    Agreement,
    Axis,
    Panel,
    Parameters,
    Preset,
    Reference,
    System,
    Trace,
)


class SpikedParameters(Parameters):
    dimension: int = Field(200, ge=10, le=5000)
    """Dimension d of the inputs."""
    samples: int = Field(400, ge=10, le=100_000)
    """Number n of samples."""
    strength: float = Field(1.0, gt=0.0, le=100.0)
    """Variance s of the spike, in units of the variance of the noise."""


def teacher(parameters, rng):
    spike = rng.standard_normal(parameters.dimension)
    return {"spike": spike / np.linalg.norm(spike)}


def measure(parameters, rng):
    spike = teacher(parameters, rng)["spike"]
    samples, dimension = parameters.samples, parameters.dimension
    X = rng.standard_normal((samples, dimension))
    X += np.sqrt(parameters.strength) * np.outer(rng.standard_normal(samples), spike)
    values, vectors = np.linalg.eigh(X.T @ X / samples)
    return {"squared_overlap": (vectors[:, -1] @ spike) ** 2, "eigenvalue": values[-1]}


def predict(parameters):
    s, ratio = parameters.strength, parameters.dimension / parameters.samples
    threshold = parameters.dimension / s**2
    if parameters.samples <= threshold:
        overlap, eigenvalue = 0.0, (1 + np.sqrt(ratio)) ** 2
    else:
        overlap, eigenvalue = (1 - ratio / s**2) / (1 + ratio / s), (1 + s) * (1 + ratio / s)
    return {"squared_overlap": overlap, "eigenvalue": eigenvalue, "threshold": threshold}


def chance(parameters, prediction):
    return {"squared_overlap": 1 / parameters.dimension}


system = System(
    name="spiked-covariance",
    title="Principal components of a spiked covariance",
    version="1",
    parameters=SpikedParameters,
    measure=measure,
    predict=predict,
    teacher=teacher,
    chance=chance,
    axis=Axis("samples", "samples n"),
    claims=[
        Agreement(
            "overlap-above-threshold",
            "Above the threshold the squared overlap is (1 - g / s²) / (1 + g / s), g = d / n.",
            metric="squared_overlap",
            source="doi:10.1214/009117905000000233, Theorem 1.1",
            within=0.04,
            power=0.15,
            because="Terms of order 1 / d, largest near the threshold.",
            where=lambda cell: cell.setting.samples >= 2 * cell.predicted("threshold"),
            missing="needs samples >= 2 d / s²",
        ),
    ],
    panels=[
        Panel(
            "overlap",
            "The spike appears at a sharp sample size",
            "squared overlap",
            [Trace("squared_overlap", "principal component")],
            "Squared overlap of the leading principal component with the spike.",
            markers={"threshold": "threshold"},
            y_range=(0.0, 1.0),
        ),
    ],
    presets={
        "quick": Preset(
            "the transition at d = 200; a few seconds",
            {"samples": [50, 100, 200, 400, 800, 1600]},
            replicates=20,
        ),
    },
    references=[
        Reference(
            "baik2005",
            "@article{baik2005,\n"
            "  author = {Baik, J. and Ben Arous, G. and P{\\'e}ch{\\'e}, S.},\n"
            "  title = {Phase transition of the largest eigenvalue for nonnull complex sample\n"
            "    covariance matrices},\n"
            "  journal = {Annals of Probability}, volume = {33}, pages = {1643--1697},\n"
            "  year = {2005}\n"
            "}",
        ),
    ],
)
