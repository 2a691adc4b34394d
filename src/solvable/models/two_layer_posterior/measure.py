"""One replicate of `curse-of-detail`: networks drawn from their posterior, and their alignment."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from solvable.frame.points import Metrics, listed
from solvable.models.two_layer_posterior.constants import specialisation
from solvable.models.two_layer_posterior.langevin import Posterior, effective_samples, run_langevin
from solvable.models.two_layer_posterior.large_deviation import readout_scale
from solvable.models.two_layer_posterior.neuron_counts import LAW_EDGES, outlier_edge
from solvable.models.two_layer_posterior.overlap import neuron_overlap
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.target import HermiteTarget

TEST_SAMPLES = 1_000

OBSERVED = 10
"""Langevin steps between two observations."""


def draw_target(parameters: CurseParameters, rng: np.random.Generator) -> HermiteTarget:
    """Draw a target with a random direction."""
    return HermiteTarget(parameters.dimension, parameters.degree, int(rng.integers(2**31)))


def draw_teacher(parameters: CurseParameters, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the direction of the target of one replicate, which a study stores."""
    return {"direction": draw_target(parameters, rng).direction}


def measure(parameters: CurseParameters, rng: np.random.Generator) -> Metrics:
    """Measure one replicate: fresh samples, and one network from each start."""
    target = draw_target(parameters, rng)
    X, y = target.sample(parameters.samples, rng, np.float32)
    chi = readout_scale(parameters.readout, parameters.width)
    scale = 1 / sqrt(parameters.width * chi)
    posterior = Posterior(X, y.astype(np.float32), parameters.kappa, scale, parameters.activation)
    seen = Observer(parameters, target, posterior, rng)
    shape = (parameters.networks, parameters.width, parameters.dimension + 1)
    states = rng.standard_normal(shape, dtype=np.float32)
    if parameters.start != "prior":
        states[-1] = planted(parameters, target, states[-1], scale)
    run = run_langevin(
        posterior,
        states,
        rng,
        steps=parameters.steps,
        share=parameters.step,
        every=OBSERVED,
        observe=seen,
    )
    return seen.metrics() | {
        "training_error": float(run.errors.mean()),
        "virial": run.virial,
        "step_size": run.step,
        "step_error": run.step_error if np.isfinite(run.step_error) else None,
        "duration": run.step * (parameters.steps - parameters.steps // 2),
    }


def planted(
    parameters: CurseParameters, target: HermiteTarget, state: np.ndarray, scale: float
) -> np.ndarray:
    """Plant specialised neurons in a network of the prior, as many as in the wide limit."""
    d, width = parameters.dimension, parameters.width
    best = specialisation(parameters.activation, parameters.degree)
    if best.kind == "specialised":
        u, r, neurons = best.u, best.r, best.neurons
    else:  # diffuse or condensed: plant a few strong neurons
        u, r, neurons = 1.5, 0.3, 2.0
    chi = readout_scale(parameters.readout, width)
    count = min(width, max(1, round(0.8 * neurons * sqrt(chi * width / d))))
    overlap = float(neuron_overlap(parameters.activation, parameters.degree).value(u, r))
    planted_state = state.astype(np.float64)
    rest = planted_state[:count, :d]
    rest -= np.outer(rest @ target.direction, target.direction)
    # for even targets u and -u have the same overlap, so that one sign is enough
    planted_state[:count, :d] = sqrt(r) * rest + u * sqrt(d) * target.direction
    planted_state[:count, d] = 0.8 / (count * overlap * scale)
    return planted_state.astype(state.dtype)


class Observer:
    """Observer of the second half of a run: alignment, specialised neurons, and errors."""

    def __init__(
        self,
        parameters: CurseParameters,
        target: HermiteTarget,
        posterior: Posterior,
        rng: np.random.Generator,
    ) -> None:
        self.parameters, self.target, self.posterior = parameters, target, posterior
        self.overlap = neuron_overlap(parameters.activation, parameters.degree)
        self.test, self.labels = target.sample(TEST_SAMPLES, rng, np.float32)
        self.alignments: list[np.ndarray] = []
        self.test_errors: list[float] = []
        # number of neurons, sum of |u|, and sum of r
        self.outliers, self.others = np.zeros(3), np.zeros(3)
        self.law = np.zeros(LAW_EDGES.size - 1)

    def __call__(self, theta: np.ndarray) -> None:
        """Record the alignment, neurons and errors of a state."""
        d = self.parameters.dimension
        v, b = theta[..., :d].astype(np.float64), theta[..., d].astype(np.float64)
        u = v @ self.target.direction / sqrt(d)
        r = np.maximum(np.sum(v * v, axis=2) / d - u * u, 0.0)
        # A = sum_i a_i c(w_i), in closed form
        self.alignments.append(self.posterior.scale * np.sum(b * self.overlap.value(u, r), axis=1))
        out = np.abs(u) > outlier_edge(d)
        for sums, chosen in ((self.outliers, out), (self.others, ~out)):
            sums += chosen.sum(), np.abs(u[chosen]).sum(), r[chosen].sum()
        self.law += np.histogram(np.abs(u), LAW_EDGES)[0]
        if len(self.alignments) % OBSERVED == 1:
            # E (f - y)² = E (f - A y)² + (1 - A)² scatters less than the left side on few samples
            alignment = self.alignments[-1]
            rest = self.posterior.outputs(theta, self.test) - alignment * self.labels[:, None]
            self.test_errors.append(float(np.mean(rest**2) + np.mean((1 - alignment) ** 2)))

    def metrics(self) -> Metrics:
        """Return averages over the second half of the run."""
        series = np.array(self.alignments)
        times = len(series) * series.shape[1]
        means = dict.fromkeys(("prior", "planted"))
        starts = (
            ("prior", "planted") if self.parameters.start == "both" else (self.parameters.start,)
        )
        means |= dict(zip(starts, map(float, series.mean(axis=0)), strict=True))
        count, error = effective_samples(series)
        averages: dict[str, Any] = {
            "alignment": float(series.mean()),
            "alignment_prior": means["prior"],
            "alignment_planted": means["planted"],
            "outliers": float(self.outliers[0] / times),
            "outlier_overlap": _mean(self.outliers, 1),
            "outlier_rest": _mean(self.outliers, 2),
            "bulk_rest": _mean(self.others, 2),
            # neurons per unit of |u|
            "neuron_law": listed(self.law / times / np.diff(LAW_EDGES)),
            "test_error": float(np.mean(self.test_errors)),
            "effective_samples": count,
            "effective_samples_error": error,
        }
        return averages


def _mean(sums: np.ndarray, entry: int) -> float | None:
    return float(sums[entry] / sums[0]) if sums[0] else None
