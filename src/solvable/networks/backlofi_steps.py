r"""One pass of backward coupling: from the top boundary down, replace filter columns on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from solvable.arrays import random_stream
from solvable.networks.backlofi_network import Column, CoupledLayer, States, states_of
from solvable.networks.backlofi_signals import ForwardGain, Signal, backward_signal
from solvable.operators.activations import derivative
from solvable.operators.modulus import with_fixed_signs

Drop: TypeAlias = Literal["rayleigh", "gradient-importance", "earlier"]
"""Rule that selects the filter columns to replace."""

DROPS: tuple[Drop, ...] = ("rayleigh", "gradient-importance", "earlier")
"""Names of the rules for replaced columns."""


@dataclass(frozen=True)
class PassSettings:
    """Settings of one pass."""

    signal: Signal
    n_replaced: tuple[
        int, ...
    ]  # number of replaced columns on each side of each boundary, lowest boundary first
    amplitude: float  # beta: root mean square of a new coordinate, relative to forward coordinates
    drop: Drop
    damping: float  # share of new weights in the mix with old ones; 1: only new
    seed: int  # seed of the lift rows of read columns


def replaced_columns(layers: Sequence[CoupledLayer], fraction: float) -> tuple[int, ...]:
    """Number of columns replaced on each side of each boundary, lowest boundary first."""
    kept = [int(np.count_nonzero(layer.kinds == Column.FORWARD)) for layer in layers]
    return tuple(max(1, round(fraction * min(pair))) if fraction else 0 for pair in pairwise(kept))


def coupled_pass(
    layers: Sequence[CoupledLayer],
    inputs: np.ndarray,
    labels: np.ndarray,
    coefficients: np.ndarray,
    forward: ForwardGain,
    settings: PassSettings,
    number: int,
) -> tuple[CoupledLayer, ...]:
    """Replace columns at every boundary, from the top down; the readout is not refitted."""
    # Time about 4 n P² per boundary, memory 4 n P per layer (lofi 33).
    built, before = list(layers), list(layers)
    for boundary in range(len(built) - 2, -1, -1):
        rank = settings.n_replaced[boundary]
        if not rank:
            continue
        states = states_of(built, inputs)
        signal = backward_signal(
            settings.signal, built, states, labels, coefficients, boundary + 1, forward
        )
        # (1/n) Gamma^T z ~ U S V^T, r leading pairs, and scores s = Gamma U   (lofi 33)
        write, read = _singular_pairs(
            signal.T @ states.features[boundary] / len(inputs), rank, settings.seed
        )
        scores = signal @ write
        built[boundary] = _with_read_columns(
            built[boundary], states, boundary, read, labels, settings, number
        ).damped(before[boundary], settings.damping)
        lower = built[boundary]
        features = lower.activate(lower.preactivation(states.features[boundary]))
        built[boundary + 1] = _with_written_columns(
            built[boundary + 1], features, scores, write, labels, settings, number
        ).damped(before[boundary + 1], settings.damping)
    return _with_fresh_scales(built, inputs)


def _with_fresh_scales(
    layers: Sequence[CoupledLayer], inputs: np.ndarray
) -> tuple[CoupledLayer, ...]:
    """Recompute the scale c of every layer, because the layers below it changed after it was built."""
    fresh = []
    for layer in layers:
        fresh.append(layer if layer.smoothed is not None else layer.rescaled(inputs))
        inputs = fresh[-1].activate(fresh[-1].preactivation(inputs))
    return tuple(fresh)


def _singular_pairs(matrix: np.ndarray, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading left and right singular vectors, the right ones with a fixed sign."""
    oversamples, power_iterations = 32, 4  # settings as in the authors' code
    if min(matrix.shape) <= 4 * (rank + oversamples):
        left, _, right = np.linalg.svd(matrix, full_matrices=False)
    else:
        from sklearn.utils.extmath import randomized_svd

        left, _, right = randomized_svd(
            matrix,
            rank,
            n_oversamples=oversamples,
            n_iter=power_iterations,
            power_iteration_normalizer="QR",
            random_state=seed % 2**32,
        )
    left, read = left[:, :rank], right[:rank].T
    fixed = with_fixed_signs(read)
    return left * np.sign(np.sum(read * fixed, axis=0)), fixed


def _with_read_columns(
    layer: CoupledLayer,
    states: States,
    level: int,
    read: np.ndarray,
    labels: np.ndarray,
    settings: PassSettings,
    number: int,
) -> CoupledLayer:
    """Row step: add the directions V that the layers above use, with Gaussian lift rows."""
    features = states.features[level]
    kept = _survivors(
        layer, features, states.fields[level], labels, settings, number, read.shape[1], Column.READ
    )
    # V at amplitude beta tau, tau the mean root mean square of the remaining forward coordinates
    tau = kept.amplitude(features) or layer.amplitude(features)
    columns = _at_amplitude(read, features, settings.amplitude * tau)
    rows = random_stream(settings.seed, "read", number, level).standard_normal(
        (read.shape[1], layer.width)
    )
    return _extended(kept, columns, rows, Column.READ, number).rescaled(features)


def _with_written_columns(
    layer: CoupledLayer,
    features: np.ndarray,
    scores: np.ndarray,
    write: np.ndarray,
    labels: np.ndarray,
    settings: PassSettings,
    number: int,
) -> CoupledLayer:
    """Column step: add the correlations of the corrected features with the scores, with rows U^T."""
    fields = layer.preactivation(features)
    kept = _survivors(
        layer, features, fields, labels, settings, number, write.shape[1], Column.WRITTEN
    )
    tau = kept.amplitude(features) or layer.amplitude(features)
    # (1/n) z^T s with the rows U^T, at amplitude beta sqrt(p) tau   (lofi 33)
    columns = _at_amplitude(
        features.T @ scores / len(features),
        features,
        settings.amplitude * np.sqrt(layer.width) * tau,
    )
    return _extended(kept, columns, write.T, Column.WRITTEN, number).rescaled(features)


def _at_amplitude(columns: np.ndarray, features: np.ndarray, target: float) -> np.ndarray:
    """Scale columns to coordinates of the given root mean square; zero columns stay zero."""
    sizes = np.sqrt(np.mean((features @ columns) ** 2, axis=0))
    factors = np.divide(target, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    return np.asarray(columns * factors)


def _extended(
    layer: CoupledLayer, columns: np.ndarray, rows: np.ndarray, kind: Column, number: int
) -> CoupledLayer:
    count = columns.shape[1]
    return replace(
        layer,
        columns=np.hstack([layer.columns, columns]),
        lift=np.vstack([layer.lift, rows]),
        kinds=np.concatenate([layer.kinds, np.full(count, kind)]),
        born=np.concatenate([layer.born, np.full(count, number)]),
        smoothed=None,
    )


def _survivors(
    layer: CoupledLayer,
    features: np.ndarray,
    fields: np.ndarray,
    labels: np.ndarray,
    settings: PassSettings,
    number: int,
    count: int,
    kind: Column,
) -> CoupledLayer:
    """Remove the least important columns, except first moments and columns of this pass."""
    importance = column_importance(layer, features, fields, labels, settings.drop)
    if settings.drop == "earlier":
        # Columns of the same kind from earlier passes go first.
        importance = np.where(layer.kinds == kind, -1.0, importance)
    safe = (layer.kinds == Column.FIRST_MOMENT) | (layer.born == number)
    order = np.argsort(np.where(safe, np.inf, importance), kind="stable")
    kept = np.sort(order[min(count, int(np.count_nonzero(~safe))) :])
    return replace(
        layer,
        columns=layer.columns[:, kept],
        lift=layer.lift[kept],
        kinds=layer.kinds[kept],
        born=layer.born[kept],
    )


def column_importance(
    layer: CoupledLayer,
    features: np.ndarray,
    fields: np.ndarray,
    labels: np.ndarray,
    drop: Drop,
) -> np.ndarray:
    """Importance of each column of a filter, shape (K,); root of the sum of squares over labels."""
    norms = np.linalg.norm(layer.columns, axis=0)
    safe_norms = np.where(norms > 0, norms, 1.0)
    coordinates = features @ (layer.columns / safe_norms)
    quotients = labels.T @ coordinates**2 / len(features)  # lambda = v^T C v for unit v
    if drop != "gradient-importance":
        return np.asarray(np.linalg.norm(quotients, axis=0))
    slopes = derivative(layer.activation, fields)
    # Root mean square over neurons i of e_i lambda |v| W_i / c + d_i m, m = (1/n) sum y v.z,
    # d_i = E sigma'(h_i), e_i = E[h_i sigma'(h_i)]   (lofi 34)
    d, e = slopes.mean(axis=0), np.mean(fields * slopes, axis=0)
    means = labels.T @ coordinates / len(features)
    rows = layer.lift * (norms / layer.scale)[:, None]
    power = np.zeros(len(norms))
    for quotient, mean in zip(quotients, means, strict=True):
        power += np.mean((e * quotient[:, None] * rows + d * mean[:, None]) ** 2, axis=1)
    return np.asarray(np.sqrt(power))
