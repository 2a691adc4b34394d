"""Kernel ridge regression on polynomials: it learns one degree after another, but no features.

A rotation-invariant kernel has one eigenvalue for all D_p ~ d^p / p! directions of degree p, and learns
them together once n exceeds D_p. The system fits kernel ridge to random polynomials of degree 3, and
compares the error with mean-field theory and with a lower bound for all such kernels. The features of
an input share its norm, which is the largest effect of a small dimension.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from solvable.frame.agreement import Agreement
from solvable.frame.conditions import above, at_most
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import Metrics
from solvable.frame.system import Preset, System
from solvable.frame.traces import Trace
from solvable.moment_spectrum.kernel_degrees import best_kernel_error, degree_dimension
from solvable.moment_spectrum.kernel_ridge import ridge_on_degrees
from solvable.operators import HermiteFeatures

DEGREES = (1, 2, 3)


class KernelParameters(Parameters):
    """A random polynomial of Gaussian inputs, and kernel ridge regression."""

    dimension: int = Field(30, ge=5, le=60)
    """Dimension d of the inputs."""
    samples: int = Field(300, ge=5, le=5000)
    """Number n of samples."""
    linear: float = Field(0.4, ge=0.0, le=1.0)
    """Energy of the target in degree 1; the three energies are scaled to sum 1."""
    quadratic: float = Field(0.4, ge=0.0, le=1.0)
    """Energy of the target in degree 2."""
    cubic: float = Field(0.2, gt=0.0, le=1.0)
    """Energy of the target in degree 3."""
    noise: float = Field(0.0, ge=0.0, le=10.0)
    """Variance of the label noise; the target has variance 1."""
    hierarchy: float = Field(30.0, ge=1.0, le=1000.0)
    """Ratio of the kernel eigenvalues of successive degrees."""
    ridge: float = Field(1.0, ge=1e-3, le=1000.0)
    """Ridge penalty over D_3, the variance of the kernel in degree 3."""


def energies_of(parameters: KernelParameters) -> np.ndarray:
    """Energy of the target in each degree."""
    shares = np.array([parameters.linear, parameters.quadratic, parameters.cubic])
    return np.asarray(shares / shares.sum())


def sizes_of(parameters: KernelParameters) -> np.ndarray:
    """Number of directions of each degree."""
    return np.array([degree_dimension(parameters.dimension, degree) for degree in DEGREES], float)


def eigenvalues_of(parameters: KernelParameters) -> np.ndarray:
    """Eigenvalue of the kernel in each degree; the eigenvalue of degree 3 is 1."""
    return np.asarray(parameters.hierarchy ** np.array([2.0, 1.0, 0.0]))


def measure(parameters: KernelParameters, rng: np.random.Generator) -> Metrics:
    """Fit one random polynomial and measure the error on fresh inputs."""
    d, n = parameters.dimension, parameters.samples
    maps = [HermiteFeatures(degree, d) for degree in DEGREES]
    weights = [rng.standard_normal((features.n_features, 1)) for features in maps]
    energies = energies_of(parameters)
    X, fresh = rng.standard_normal((n, d)), rng.standard_normal((2000, d))
    parts, fresh_parts = (
        [
            np.sqrt(energy) * features.project(inputs, w / np.linalg.norm(w))[:, 0]
            for features, w, energy in zip(maps, weights, energies, strict=True)
        ]
        for inputs in (X, fresh)
    )
    labels = np.sum(parts, axis=0) + np.sqrt(parameters.noise) * rng.standard_normal(n)
    pairs = list(zip(eigenvalues_of(parameters), maps, strict=True))
    gram = sum(value * features.kernel(X) for value, features in pairs)
    penalty = parameters.ridge * sizes_of(parameters)[-1]
    dual = np.linalg.solve(gram + penalty * np.eye(n), labels)
    fitted = sum(value * features.kernel(fresh, X) for value, features in pairs) @ dual
    # The learned share of a degree is the fit's coefficient of the target's component in this degree.
    learned = [
        float(np.mean(fitted * part) / energy) if energy else None
        for part, energy in zip(fresh_parts, energies, strict=True)
    ]
    error = float(np.mean((fitted - np.sum(fresh_parts, axis=0)) ** 2))
    return {"error": error, "learned": learned}


def predict(parameters: KernelParameters) -> Metrics:
    """Predict the mean-field error of kernel ridge, and the lower bound for every kernel."""
    # q(r) and v(r) of (kernel-staircase 1, 2); one norm in many dimensions (kernel-staircase 3)
    energies, sizes = energies_of(parameters), sizes_of(parameters)
    ridge = ridge_on_degrees(
        samples=parameters.samples,
        dimension=parameters.dimension,
        degrees=DEGREES,
        energies=energies,
        eigenvalues=eigenvalues_of(parameters),
        penalty=parameters.ridge * sizes[-1],
        noise=parameters.noise,
    )
    # 1 - sum_p E_p min(1, n/D_p)  (kernel-staircase 4; arXiv:2605.14567, Section 3)
    by_degree = dict(zip(DEGREES, map(float, energies), strict=True))
    best = best_kernel_error(
        samples=parameters.samples, dimension=parameters.dimension, energies=by_degree
    )
    return {
        "error": ridge.error,
        "learned": [
            float(share) if energy else None
            for share, energy in zip(ridge.learned, energies, strict=True)
        ],
        "best_error": float(best),
        "amplification": ridge.amplification,
        "steps": list(sizes),
    }


def chance(parameters: KernelParameters, prediction: Metrics) -> Metrics:
    """Metrics of the function 0."""
    return {
        "error": 1.0,
        "learned": [0.0 if energy else None for energy in energies_of(parameters)],
    }


def degree_names(parameters: KernelParameters) -> list[str]:
    """Names of the degrees."""
    return [f"degree {degree}" for degree in DEGREES]


REASON = "The theory neglects terms of order 1/d: features of one degree are not Gaussian given the norm."

system = System(
    name="kernel-staircase",
    title="Kernel ridge learns a polynomial degree by degree, but no features",
    version="1",
    parameters=KernelParameters,
    measure=measure,
    predict=predict,
    chance=chance,
    axis=Axis("samples", "samples n"),
    claims=[
        Agreement(
            "error",
            "The error of kernel ridge equals the prediction of mean-field theory.",
            metric="error",
            source="derivations/kernel-staircase (2)",
            within=0.04,
            because=REASON,
            relative=True,
            where={"amplification": at_most(3)},
            missing="raise ridge or samples",
        ),
        Agreement(
            "learned",
            "The learned share of each degree equals the prediction of mean-field theory.",
            metric="learned",
            source="derivations/kernel-staircase (1)",
            within=0.05,
            because=REASON,
            where={"amplification": at_most(3), "expected": above(0.2)},
            missing="raise ridge or samples",
            entry=degree_names,
            power=0.15,
        ),
    ],
    panels=[
        Panel(
            "error",
            "Error of kernel ridge and of the best kernel",
            "error / error of learning nothing",
            [
                Trace("error", "kernel ridge"),
                Trace("best_error", "lower bound for kernels", measured=False, dashed=True),
            ],
            "Vertical lines: the number of directions of degrees 1, 2 and 3.",
            markers={"steps": "degree"},
        ),
        Panel(
            "learned",
            "Learned share of each degree",
            "learned share of a degree",
            [Trace("learned", names=degree_names)],
            "All directions of one degree are learned together.",
            markers={"steps": ""},
        ),
    ],
    presets={
        "quick": Preset(
            "Three degrees at d = 30; fifteen seconds.",
            "samples=10,30,80,160,320,640,1280",
            replicates=16,
        )
    },
    references=("simon2023eigenlearning", "wortsman2026scaling"),
)
