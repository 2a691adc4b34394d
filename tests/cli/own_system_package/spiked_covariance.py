"""Principal components of a spiked covariance: one solvable model in one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from solvable.systems.base import (
    Claim,
    Figure,
    Finding,
    Marker,
    NotTestable,
    Parameters,
    Point,
    Preset,
    Reference,
    Series,
    System,
)


class SpikedParameters(Parameters):
    dimension: int = Field(200, ge=10, le=5000)
    """Dimension d of the inputs."""
    samples: int = Field(400, ge=10, le=100_000)
    """Number n of samples."""
    strength: float = Field(1.0, gt=0.0, le=100.0)
    """Variance s of the spike, in units of the variance of the noise."""


def overlap_agrees(points: Sequence[Point]) -> Finding | NotTestable:
    """Compare overlaps well above the threshold, averaged over the points there."""
    above = [one for one in points if one.parameters["samples"] >= 2 * one.predicted("threshold")]
    if not above or min(one.replicates for one in above) < 2:
        return NotTestable("Needs samples >= 2 d / s^2 and at least two replicates.")
    errors = [one.standard_error("squared_overlap") for one in above]
    standard_error = float(np.sqrt(np.sum(np.square(errors))) / len(above))
    return Finding(
        measured=float(np.mean([one.mean("squared_overlap") for one in above])),
        expected=float(np.mean([one.predicted("squared_overlap") for one in above])),
        standard_error=standard_error,
        tolerance=4 * standard_error + 2 / min(one.parameters["dimension"] for one in above),
        replicates=sum(one.replicates for one in above),
    )


class SpikedCovariance(System):
    """A direction of larger variance hides in noise until the sample is large enough.

    Inputs are Gaussian with covariance I + s v v^T. The leading principal component has a non-zero
    overlap with v once n exceeds d / s^2.
    """

    name = "spiked-covariance"
    title = "Principal components of a spiked covariance"
    version = "1"
    parameters = SpikedParameters
    references = (
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
    )
    presets: ClassVar = {
        "quick": Preset(
            "the transition at d = 200; a few seconds",
            {"samples": [50, 100, 200, 400, 800, 1600]},
            replicates=8,
        ),
    }
    claims = (
        Claim(
            "overlap-above-threshold",
            "Above the threshold the squared overlap is (1 - g / s^2) / (1 + g / s), g = d / n.",
            "doi:10.1214/009117905000000233",
            "Four standard errors, and corrections of order 1 / d.",
            overlap_agrees,
        ),
    )

    def measure(self, parameters, rng):
        spike = self.teacher(parameters, rng)["spike"]
        samples, dimension = parameters.samples, parameters.dimension
        X = rng.standard_normal((samples, dimension))
        X += np.sqrt(parameters.strength) * np.outer(rng.standard_normal(samples), spike)
        values, vectors = np.linalg.eigh(X.T @ X / samples)
        return {"squared_overlap": (vectors[:, -1] @ spike) ** 2, "eigenvalue": values[-1]}

    def predict(self, parameters):
        s, ratio = parameters.strength, parameters.dimension / parameters.samples
        threshold = parameters.dimension / s**2
        if parameters.samples <= threshold:
            return {
                "squared_overlap": 0.0,
                "eigenvalue": (1 + np.sqrt(ratio)) ** 2,
                "threshold": threshold,
            }
        return {
            "squared_overlap": (1 - ratio / s**2) / (1 + ratio / s),
            "eigenvalue": (1 + s) * (1 + ratio / s),
            "threshold": threshold,
        }

    def teacher(self, parameters, rng):
        spike = rng.standard_normal(parameters.dimension)
        return {"spike": spike / np.linalg.norm(spike)}

    def figures(self, points):
        samples = [one.parameters["samples"] for one in points]
        measured = [float(one.mean("squared_overlap")) for one in points]
        errors = [float(one.standard_error("squared_overlap")) for one in points]
        predicted = [float(one.predicted("squared_overlap")) for one in points]
        return [
            Figure(
                "overlap",
                "The spike appears at a sharp sample size",
                "samples n",
                "squared overlap",
                [
                    Series("theory", samples, predicted, kind="line"),
                    Series("measured", samples, measured, kind="points", error=errors),
                ],
                caption="Squared overlap of the leading principal component with the spike.",
                markers=[Marker(float(points[0].predicted("threshold")), "threshold")],
                x_scale="log",
                y_range=(0.0, 1.0),
            )
        ]
