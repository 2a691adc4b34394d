"""Observers of Langevin runs: alignment, specialised neurons and errors of two-layer networks."""

from __future__ import annotations

from math import sqrt

import numpy as np

from solvable.frame.points import Metrics, listed
from solvable.models.two_layer_posterior.langevin import Posterior, effective_samples
from solvable.models.two_layer_posterior.neuron_counts import LAW_EDGES, outlier_edge
from solvable.models.two_layer_posterior.overlap import neuron_overlap
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.target import HermiteTarget

TEST_SAMPLES = 1_000

OBSERVED = 10
"""Langevin steps between two observations."""


class Neurons:
    """Counts and mean strengths of neurons of the first layer, summed over observations."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        # number of neurons, sum of |u|, and sum of r
        self.outliers, self.others = np.zeros(3), np.zeros(3)
        self.law = np.zeros(LAW_EDGES.size - 1)

    def add(self, u: np.ndarray, r: np.ndarray) -> None:
        """Count neurons with overlaps u and squared norms r of their irrelevant weights."""
        out = np.abs(u) > outlier_edge(self.dimension)
        for sums, chosen in ((self.outliers, out), (self.others, ~out)):
            sums += chosen.sum(), np.abs(u[chosen]).sum(), r[chosen].sum()
        self.law += np.histogram(np.abs(u), LAW_EDGES)[0]

    def metrics(self, times: int) -> Metrics:
        """Return averages over a number of observed networks."""
        return {
            "outliers": float(self.outliers[0] / times),
            "outlier_overlap": _mean(self.outliers, 1),
            "outlier_rest": _mean(self.outliers, 2),
            "bulk_rest": _mean(self.others, 2),
            # neurons per unit of |u|
            "neuron_law": listed(self.law / times / np.diff(LAW_EDGES)),
        }


def _mean(sums: np.ndarray, entry: int) -> float | None:
    return float(sums[entry] / sums[0]) if sums[0] else None


def alignments_by_start(series: np.ndarray, start: str) -> Metrics:
    """Return mean alignments of a series (observations, networks), and its effective samples."""
    means: Metrics = {"alignment_prior": None, "alignment_planted": None}
    starts = ("prior", "planted") if start == "both" else (start,)
    for name, mean in zip(starts, series.mean(axis=0), strict=True):
        means[f"alignment_{name}"] = float(mean)
    count, error = effective_samples(series)
    return means | {
        "alignment": float(series.mean()),
        "effective_samples": count,
        "effective_samples_error": error,
    }


class AlignmentObserver:
    """Base of the observers of the second half of a run: alignments of networks, and test errors."""

    def __init__(self, parameters: CurseParameters) -> None:
        self.parameters = parameters
        self.alignments: list[np.ndarray] = []
        self.test_errors: list[float] = []
        self.neurons = Neurons(parameters.dimension)

    def __call__(self, theta: np.ndarray) -> None:
        """Record what is observed of a state."""
        raise NotImplementedError

    @property
    def mean_alignment(self) -> float:
        """Mean alignment over networks and observations."""
        return float(np.mean(self.alignments))

    def metrics(self) -> Metrics:
        """Return averages over the second half of the run."""
        series = np.array(self.alignments)
        return {
            **alignments_by_start(series, self.parameters.start),
            **self.neurons.metrics(series.size),
            "second_outliers": None,
            "second_strength": None,
            "test_error": float(np.mean(self.test_errors)),
        }


class Observer(AlignmentObserver):
    """Observer of the second half of a run: alignment, specialised neurons, and errors."""

    def __init__(
        self,
        parameters: CurseParameters,
        target: HermiteTarget,
        posterior: Posterior,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(parameters)
        self.target, self.posterior = target, posterior
        self.overlap = neuron_overlap(parameters.activation, parameters.degree)
        self.test, self.labels = target.sample(TEST_SAMPLES, rng, np.float32)

    def __call__(self, theta: np.ndarray) -> None:
        """Record the alignment, neurons and errors of a state."""
        d = self.parameters.dimension
        v, b = theta[..., :d].astype(np.float64), theta[..., d].astype(np.float64)
        u = v @ self.target.direction / sqrt(d)
        r = np.maximum(np.sum(v * v, axis=2) / d - u * u, 0.0)
        # A = sum_i a_i c(w_i), in closed form
        self.alignments.append(self.posterior.scale * np.sum(b * self.overlap.value(u, r), axis=1))
        self.neurons.add(u, r)
        if len(self.alignments) % OBSERVED == 1:
            # E (f - y)² = E (f - A y)² + (1 - A)² scatters less than the left side on few samples
            alignment = self.alignments[-1]
            rest = self.posterior.outputs(theta, self.test) - alignment * self.labels[:, None]
            self.test_errors.append(float(np.mean(rest**2) + np.mean((1 - alignment) ** 2)))
