"""Measure one replicate of the hierarchical model: draw data, find directions, fit, score the fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from solvable.arrays import as_source
from solvable.frame.points import Metrics
from solvable.models.multi_index.hierarchical.parameters import NEURONS, HierarchicalParameters
from solvable.models.multi_index.informed import informed_overlaps
from solvable.models.multi_index.learner import MultiIndexRegressor
from solvable.models.multi_index.overlaps import mapped_labels
from solvable.models.multi_index.readout import fit_readout
from solvable.models.multi_index.spectral import InputMoment, spectral_directions
from solvable.models.multi_index.target import draw_target


@dataclass(frozen=True)
class _Found:
    """Directions that one fit finds, and the predicted labels of fresh samples."""

    directions: np.ndarray  # orthonormal directions, (d, p)
    eigenvalues: np.ndarray  # leading eigenvalues, farthest from the bulk first, (p,)
    edges: tuple[float, float]
    predictions: np.ndarray | None


def measure(parameters: HierarchicalParameters, rng: np.random.Generator) -> Metrics:
    """Return the metrics measured in one replicate."""
    target = draw_target(parameters, rng)
    X, y = target.sample(parameters.samples, rng)
    fresh, _ = target.sample(parameters.test_samples, rng)
    seed = int(rng.integers(2**31))
    fit = _optimal if parameters.label_map == "optimal" else _learned
    found = fit(parameters, X, y, fresh, seed)
    # Single eigenvectors mix several features. The overlap is therefore the squared projection of w_k
    # on the span of the p leading eigenvectors (multi-index 24).
    squared = np.sum((found.directions.T @ target.directions) ** 2, axis=0)
    a = np.array(target.channel.amplitudes)
    at_upper = found.eigenvalues[0] > np.mean(found.edges)
    risk = None
    if found.predictions is not None:
        risk = float(np.mean((found.predictions - target.clean(fresh)) ** 2))
    informed = None
    if parameters.message_passing:
        best = informed_overlaps(target.channel, X, y, target.directions, rng)
        informed = None if best is None else float(a**2 @ (1 - best))
    return {
        "squared_overlap": squared.tolist(),
        # weighted subspace error sum_k a_k² (1 - rho_k²)   (multi-index 23)
        "subspace_error": float(a**2 @ (1 - squared)),
        "message_passing_error": informed,
        "risk": risk,
        "eigenvalues": found.eigenvalues.tolist(),
        "bulk_edge": float(found.edges[int(at_upper)]),
    }


def _learned(
    parameters: HierarchicalParameters, X: np.ndarray, y: np.ndarray, fresh: np.ndarray, seed: int
) -> _Found:
    """Return directions and predictions of the learner, which does not know the channel."""
    learner = MultiIndexRegressor(
        parameters.features,
        label_map=parameters.label_map,  # type: ignore[arg-type]  # never "optimal" here
        linear=False,
        readout=parameters.readout,
        n_neurons=NEURONS,
        regularisation=parameters.regularisation,
        deflation=parameters.deflation,
        whiten="none",
        n_permutations=1,
        random_state=seed,
    ).fit(X, y)
    predictions = None if parameters.readout == "none" else learner.predict(fresh)
    return _Found(learner.components_.T, learner.eigenvalues_, learner.edges_[0], predictions)


def _optimal(
    parameters: HierarchicalParameters, X: np.ndarray, y: np.ndarray, fresh: np.ndarray, seed: int
) -> _Found:
    """Return directions and predictions for the channel's best label map, which is not centred."""
    moments = parameters.channel.moments
    weights = np.interp(y, moments.labels, mapped_labels(moments, "optimal"))
    found = spectral_directions(
        partial(InputMoment, as_source(X)),
        weights,
        parameters.features,
        n_permutations=1,
        seed=seed,
    )
    predictions = None
    if parameters.readout != "none":
        readout = fit_readout(
            [(X @ found.directions, y)],
            parameters.features,
            parameters.readout,
            n_neurons=NEURONS,
            regularisation=parameters.regularisation,
            rng=np.random.default_rng(seed),
        )
        predictions = readout(fresh @ found.directions)
    return _Found(found.directions, found.eigenvalues, found.edges, predictions)
