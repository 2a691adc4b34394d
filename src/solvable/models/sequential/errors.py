"""Normalised errors of sequential recovery, for every kind of second layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.cross_terms import wants_cross_terms
from solvable.moment_spectrum.latent_draws import LatentDraws, fit_last_layer, plug_in_error
from solvable.moment_spectrum.operator_draws import OperatorSpikes
from solvable.spectra.sampled_spikes import DrawnSpikes


@dataclass(frozen=True)
class Spectrum:
    """Predicted spectrum; arrays with a leading axis of sample sizes."""

    overlap: np.ndarray  # with the span of all directions, chance included
    recovered: np.ndarray
    thresholds: np.ndarray
    places: np.ndarray  # of the eigenvalues, like the edges without the shift
    edges: np.ndarray
    noise_scale: np.ndarray
    floor: np.ndarray
    shift: float
    drawn: tuple[DrawnSpikes | None, ...] = ()  # at each sample size, where there are some
    own: np.ndarray | None = None  # overlap with a direction of its own, of many features
    operators: Sequence[OperatorSpikes] = ()  # where these were drawn, one for each size

    def only(self, place: int) -> Spectrum:
        """The spectrum at one of the sizes."""
        here = slice(place, place + 1)
        rows = ("overlap", "recovered", "places", "edges", "noise_scale")
        return replace(
            self, **{name: getattr(self, name)[here] for name in rows}, drawn=(), operators=()
        )

    def with_places(self, values: np.ndarray) -> Spectrum:
        """The same at one size with the eigenvalues of a learner, which knows no overlaps."""
        lower, upper = self.edges[0]
        out = (values > upper) | (values < lower)
        overlap = np.zeros_like(self.overlap)
        return replace(self, places=values[None], recovered=out[None], overlap=overlap)


def fresh_rows(samples: float) -> int:
    """Rows for the second layer and the readout: enough for a spline, no more than they can use."""
    return int(np.clip(samples, 4_000, 20_000))


def plug_in_layers(
    spectrum: Spectrum, *, mean: float, noise_scale: np.ndarray, n_features: int
) -> dict[str, np.ndarray]:
    """Second-layer weights of standardised labels: the eigenvalues, as they are or shrunk.

    ``mean`` is that of all eigenvalues, ``noise_scale`` what the learner takes for s.
    """
    values = np.where(spectrum.recovered, spectrum.places, _places_of_noise(spectrum, n_features))
    values = values + spectrum.shift
    return _layers(values, spectrum.overlap, mean, noise_scale[:, None], n_features)


def _places_of_noise(spectrum: Spectrum, n_features: int) -> np.ndarray:
    """Eigenvalues of noise in the place of features that are not found, (m, p)."""
    # At a distance l, l^(3/2) = R^(3/2) / (2^(3/2) D) of a semicircle of half-width R, the k-th one is
    # about (3 pi / 2 (k - 0.7))^(2/3) l inside its edge; the learner ranks those of both ends by modulus.
    p = spectrum.recovered.shape[1]
    depth = (1.5 * np.pi * (np.arange(p) + 0.3)) ** (2 / 3)
    lower, upper = spectrum.edges.T[:, :, None]
    inside = depth * (upper - lower) / 4 * n_features ** (-2 / 3)
    ends = np.concatenate([np.maximum(upper - inside, 0), np.minimum(lower + inside, 0)], axis=1)
    ranked = np.take_along_axis(ends, np.argsort(-np.abs(ends), axis=1, kind="stable"), axis=1)
    # The strongest of them are numbered first.
    order = np.cumsum(~spectrum.recovered, axis=1) - 1
    return np.take_along_axis(ranked, np.maximum(order, 0), axis=1)


def mixed_layers(
    spectrum: Spectrum, *, mean: float, noise_scale: np.ndarray, n_features: int
) -> list[dict[str, np.ndarray] | None]:
    """The same of the directions of drawn matrices, (draws, p), at every size that has some."""
    layers: list[dict[str, np.ndarray] | None] = [None] * spectrum.places.shape[0]
    for k, drawn in enumerate(spectrum.drawn):
        if drawn is not None:
            values = drawn.eigenvalues + spectrum.shift
            layers[k] = _layers(values, np.zeros(1), mean, noise_scale[k], n_features)
    return layers


def _layers(
    values: np.ndarray,
    overlap: np.ndarray,
    mean: float,
    noise_scale: np.ndarray | float,
    n_features: int,
) -> dict[str, np.ndarray]:
    """Eigenvalues, and those less their noise."""
    rest = max(n_features - values.shape[1], 1)
    # The learner's centre of the bulk: the mean of the eigenvalues that are no features.
    centre = (n_features * mean - values.sum(axis=1, keepdims=True)) / rest if mean else 0.0
    size, edge = np.abs(values - centre), 2 * noise_scale
    root = np.sqrt(np.maximum(size**2 - edge**2, 0.0))
    # sqrt((v^2 - 4 s^2)_+), of a spike theta = (v + sqrt(v^2 - 4 s^2)) / 2 the same as theta c^2,
    # which is smooth through the threshold as the overlap is.
    shrunk = np.sign(values - centre) * np.maximum(root, (size + root) / 2 * overlap)
    return {"in-sample": values, "shrinkage": shrunk}


def drawn_errors(
    draws: Sequence[LatentDraws],
    coefficients: np.ndarray,
    spectrum: Spectrum,
    layers: Mapping[str, np.ndarray],
    samples: np.ndarray,
    *,
    label_map: str,
    label_power: float,
    mixed: Sequence[Mapping[str, np.ndarray] | None] = (),
) -> dict[str, np.ndarray]:
    """Errors on draws of latent features, of all kinds, and that of the unrecovered tail alone."""
    readout = not _linear(coefficients)
    # Eigenvalues are weights in the units of the label, unless a map or a readout stands between.
    scaled = readout or label_map != "identity"
    errors = {name: np.zeros(samples.size) for name in ("least-squares", "tail-only", *layers)}
    for k, rows in enumerate(map(fresh_rows, samples)):
        stream = random_stream("sequential-recovery", "noise inside the span")
        drawn = spectrum.drawn[k] if spectrum.drawn else None
        squares = not wants_cross_terms("auto", spectrum.places.shape[1], rows, linear_terms=False)
        guess, found = spectrum.places[k] * spectrum.overlap[k], spectrum.recovered[k]
        for place, draw in enumerate(draws):
            share = 1 / len(draws)
            features = draw.learned(spectrum.overlap[k])
            alone = features
            if squares and spectrum.own is not None:  # what is spread over many directions is lost
                alone = draw.learned(np.minimum(spectrum.own[k], spectrum.overlap[k]))
            if not squares:  # products of more than a dozen are not fitted one by one here
                alone = draw.spanning(alone)
            fits: list[tuple[np.ndarray, np.ndarray, float]] = [(alone, guess, 1.0)]
            if drawn is None:
                inside = _noise_inside(features, label_power / samples[k], stream)
                plugged = [
                    (name, (features**2 - 1) @ weights[k] + inside, 1.0)
                    for name, weights in layers.items()
                ]
            else:
                matrices = len(drawn.eigenvalues)
                chosen = list(range(place % matrices, matrices, len(draws))[:3])
                along, part = [draw.along(drawn.components[j]) for j in chosen], 1 / len(chosen)
                if squares:  # of which features each direction is made matters to squares alone
                    fits = [
                        (h, drawn.eigenvalues[j], part) for h, j in zip(along, chosen, strict=True)
                    ]
                plugged = [
                    (name, (h**2 - 1) @ weights[j], part)
                    for name, weights in (mixed[k] or {}).items()
                    for h, j in zip(along, chosen, strict=True)
                ]
            errors["tail-only"][k] += share * draw.tail_error(found, guess, readout=readout)
            for learned, weights, part in fits:
                fit = fit_last_layer(
                    learned, draw.labels, readout=readout, rows=rows, guess=weights
                )
                errors["least-squares"][k] += share * part * fit.normalised_mse
            for name, index, part in plugged:
                index = draw.labels.std() / 2 * index
                errors[name][k] += share * part * plug_in_error(index, draw.labels, readout=scaled)
    return errors


def _noise_inside(features: np.ndarray, variance: float, stream: np.random.Generator) -> np.ndarray:
    """What the noise of the moment between the features adds to the index of each draw."""
    # s(h) = (sigma / 2) sum_ij (v_i delta_ij + E_ij) (h_i h_j - delta_ij), Var(E_ij) = (1 + delta_ij)
    # E[T^2] / n
    norm = np.sum(features**2, axis=1)
    power = 2 * (norm**2 - 2 * norm + features.shape[1]) * variance
    return np.asarray(np.sqrt(power) * stream.standard_normal(norm.size))


def leaning(
    coefficients: np.ndarray,
    spectrum: Spectrum,
    samples: np.ndarray,
    layers_of: Callable[[Spectrum, np.ndarray], dict[str, np.ndarray]],
    **labels: Any,
) -> dict[str, np.ndarray]:
    """By how much errors change because directions lean to where the operator is large."""
    # What a learned direction holds beside its feature leans to the largest samples and, in the plain
    # operator, to the top of {B, .}: the label depends on both.
    changes: dict[str, list[float]] = {"tail-only": [1.0] * samples.size}
    for k, drawn in enumerate(spectrum.operators):
        at, size = spectrum.only(k), samples[k : k + 1]
        sums: dict[str, np.ndarray] = {}
        for pair in drawn.learned:
            own = at if pair[0].values is None else at.with_places(pair[0].values)
            for side, (draw, here) in enumerate(zip(pair, (own, at), strict=True)):
                found = drawn_errors(
                    [draw], coefficients, here, layers_of(here, size), size, **labels
                )
                for name, error in found.items():
                    sums.setdefault(name, np.zeros(2))[side] += error[0] * draw.labels.var()
        for name in sums.keys() - {"tail-only"}:
            true, random = sums[name]
            changes.setdefault(name, []).append(float(true / random))
    return {name: np.array(change) for name, change in changes.items()}


def limit_errors(
    weights: np.ndarray, coefficients: np.ndarray, spectrum: Spectrum, n_features: int
) -> dict[str, np.ndarray]:
    """The same of infinitely many weak Gaussian features, whose index is Gaussian."""
    c2, squares, linear = spectrum.overlap, weights**2, _linear(coefficients)
    found = spectrum.recovered @ squares
    layers = plug_in_layers(
        spectrum, mean=0.0, noise_scale=spectrum.noise_scale, n_features=n_features
    )
    return {
        # NMSE = 1 - sum_i lambda_i^2 c_i^4 for the identity: the index is known up to c_i^2
        "least-squares": readout_error(explained=c2**2 @ squares, coefficients=coefficients),
        "tail-only": readout_error(explained=found, coefficients=coefficients),
        **{
            name: _limit_plug_in(weights, c2, layer, coefficients, linear)
            for name, layer in layers.items()
        },
    }


def _linear(coefficients: np.ndarray) -> bool:
    """Whether a readout of Hermite coefficients g_1, g_2, ... is a straight line."""
    return bool(np.abs(coefficients[1:]).sum() <= 1e-12 * abs(coefficients[0]))


def _limit_plug_in(
    weights: np.ndarray, c2: np.ndarray, layer: np.ndarray, g: np.ndarray, in_units: bool
) -> np.ndarray:
    """Error of the index made of given moments: as it is, or with its scale fitted by a readout."""
    # s = (1/2) sum_i b_i (h_i^2 - 1) has E[y s] = sum_i lambda_i b_i c_i^2 / sqrt(2) and power
    # E[s^2] = sum_i b_i^2 / 2
    overlap = np.sqrt(2) * np.sum(weights * layer * c2, axis=-1)
    power = np.sum(layer**2, axis=-1) / 2
    if in_units:
        return np.asarray(1 - overlap + power)
    with np.errstate(invalid="ignore"):
        explained = np.where(power > 0, overlap**2 / (4 * power), 0.0)
    return readout_error(explained=explained, coefficients=g)


def readout_error(*, explained: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    r"""Normalised error of the best function of an index of correlation :math:`\rho` with the true one.

    .. math:: \frac{\sum_{k\ge1}g_k^2(1-\rho^{2k})}{\sum_{k\ge1}g_k^2}

    Notes
    -----
    Derived (the two indices jointly Gaussian); backed by
    ``tests/models/sequential/test_readout_moments.py``.
    """
    power = coefficients**2 / np.sum(coefficients**2)
    orders = np.arange(1, power.size + 1)
    shares = np.asarray(explained, dtype=np.float64)[..., None] ** orders
    return np.asarray(np.maximum(1 - shares @ power, 0.0))
