r"""One pass of backward coupling: from the top boundary down, replace columns on either side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from solvable.arrays import random_stream
from solvable.networks.backlofi_network import Column, CoupledLayer, States, states_of
from solvable.networks.backlofi_signals import ForwardGain, Signal, backward_signal
from solvable.operators.activations import derivative
from solvable.operators.modulus import with_fixed_signs

Drop: TypeAlias = Literal["rayleigh", "gradient-importance", "earlier"]
"""Which columns make room."""

DROPS: tuple[Drop, ...] = ("rayleigh", "gradient-importance", "earlier")
"""The rules of what makes room."""

OVERSAMPLES, POWER_ITERATIONS = 32, 4
"""Of the randomised singular value decomposition, as the authors chose them."""


@dataclass(frozen=True)
class PassSettings:
    r"""How one pass couples the layers.

    Parameters
    ----------
    signal : {"local", "exact", "mean_field", "first_order"}
        Backward signal.
    n_replaced : tuple of int
        Columns replaced on either side of each boundary, from the lowest up; 0 leaves it alone.
    amplitude : float
        :math:`\beta`, root mean square of a new coordinate in units of the forward ones.
    drop : {"rayleigh", "gradient-importance", "earlier"}
        Which columns make room.
    damping : float
        Part of the new weights that is taken, 1 for all.
    seed : int
        For the lift rows of read columns.
    """

    signal: Signal
    n_replaced: tuple[int, ...]
    amplitude: float
    drop: Drop
    damping: float
    seed: int


def coupled_pass(
    layers: Sequence[CoupledLayer],
    inputs: np.ndarray,
    labels: np.ndarray,
    coefficients: np.ndarray,
    forward: ForwardGain,
    settings: PassSettings,
    number: int,
) -> tuple[CoupledLayer, ...]:
    r"""Replace columns at every boundary, from the top down.

    At the boundary of layers :math:`\ell` and :math:`\ell+1`, with the backward signal
    :math:`\Gamma` at the pre-activations of the upper one and inputs :math:`z^{\ell-1}` of the lower:

    1. :math:`\frac1n\Gamma^\top z^{\ell-1}\approx U\Sigma V^\top` (r leading pairs), scores
       :math:`s=\Gamma U`, kept from here on;
    2. the lower filter takes up V with fresh Gaussian rows, at amplitude :math:`\beta\tau`;
    3. the upper filter takes up :math:`\frac1n\tilde z^{\ell\,\top}s`, with the rows
       :math:`U^\top`, at amplitude :math:`\beta\sqrt p\,\tau`.

    :math:`\tau` is the mean root mean square of the forward coordinates that survive.

    Parameters
    ----------
    layers : sequence of CoupledLayer
        The network; left as it is.
    inputs : ndarray of shape (n, d)
        Training rows.
    labels : ndarray of shape (n, S)
        Labels as the filters use them.
    coefficients : ndarray of shape (p, S)
        Ridge readout of the network.
    forward : ForwardGain
        The network before coupling.
    settings : PassSettings
        How.
    number : int
        Of the pass, from 1.

    Returns
    -------
    tuple of CoupledLayer
        The coupled network; its readout is not refitted.

    Notes
    -----
    Time about :math:`4nP^2` per boundary for the matrix of step 1 and as much for its product with
    the signal chain; memory :math:`4nP` per layer. Section 2.6 of the note on BackLoFi.
    """
    built, before = list(layers), list(layers)
    for boundary in range(len(built) - 2, -1, -1):
        rank = settings.n_replaced[boundary]
        if not rank:
            continue
        states = states_of(built, inputs)
        signal = backward_signal(
            settings.signal, built, states, labels, coefficients, boundary + 1, forward
        )
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
    """Scales c for the features as they are now: the layers below changed after a layer was built."""
    fresh = []
    for layer in layers:
        fresh.append(layer if layer.smoothed is not None else layer.rescaled(inputs))
        inputs = fresh[-1].activate(fresh[-1].preactivation(inputs))
    return tuple(fresh)


def _singular_pairs(matrix: np.ndarray, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading left and right singular vectors, the right ones with a fixed sign."""
    if min(matrix.shape) <= 4 * (rank + OVERSAMPLES):
        left, _, right = np.linalg.svd(matrix, full_matrices=False)
    else:
        from sklearn.utils.extmath import randomized_svd

        left, _, right = randomized_svd(
            matrix,
            rank,
            n_oversamples=OVERSAMPLES,
            n_iter=POWER_ITERATIONS,
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
    """Row step: directions that the layers above ask for, with Gaussian lift rows."""
    features = states.features[level]
    kept = _survivors(
        layer, features, states.fields[level], labels, settings, number, read.shape[1], Column.READ
    )
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
    """Column step: what the corrected features say about the scores, written where it is asked."""
    fields = layer.preactivation(features)
    kept = _survivors(
        layer, features, fields, labels, settings, number, write.shape[1], Column.WRITTEN
    )
    tau = kept.amplitude(features) or layer.amplitude(features)
    columns = _at_amplitude(
        features.T @ scores / len(features),
        features,
        settings.amplitude * np.sqrt(layer.width) * tau,
    )
    return _extended(kept, columns, write.T, Column.WRITTEN, number).rescaled(features)


def _at_amplitude(columns: np.ndarray, features: np.ndarray, target: float) -> np.ndarray:
    """The columns with coordinates of the given root mean square; zero columns stay zero."""
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
    """The layer without the columns that make room; first moments and new columns are safe."""
    importance = column_importance(layer, features, fields, labels, settings.drop)
    if settings.drop == "earlier":
        # One's own columns of an earlier pass go first, whatever they are worth.
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
    r"""What each column of a filter is worth, of shape (K,).

    With :math:`\hat v=v/\|v\|`, :math:`\lambda=\hat v^\top\hat C\hat v`,
    :math:`m=\frac1n\sum y\,\hat v\cdot z`: the modulus of :math:`\lambda` for "rayleigh" and
    "earlier", the root mean square over neurons of :math:`e_i\lambda\,\|v\|W_{ji}/c+d_im` with
    :math:`d_i=E\sigma'(h_i)` and :math:`e_i=E[h_i\sigma'(h_i)]` for "gradient-importance"; of
    several labels the root of the sum of squares.

    Parameters
    ----------
    layer : CoupledLayer
        Whose columns.
    features : ndarray of shape (n, P)
        Its inputs.
    fields : ndarray of shape (n, p)
        Its pre-activations.
    labels : ndarray of shape (n, S)
        Labels as the filters use them.
    drop : {"rayleigh", "gradient-importance", "earlier"}
        The rule.

    Returns
    -------
    ndarray of shape (K,)
        Non-negative.
    """
    norms = np.linalg.norm(layer.columns, axis=0)
    safe_norms = np.where(norms > 0, norms, 1.0)
    coordinates = features @ (layer.columns / safe_norms)
    quotients = labels.T @ coordinates**2 / len(features)
    if drop != "gradient-importance":
        return np.asarray(np.linalg.norm(quotients, axis=0))
    slopes = derivative(layer.activation, fields)
    d, e = slopes.mean(axis=0), np.mean(fields * slopes, axis=0)
    means = labels.T @ coordinates / len(features)
    rows = layer.lift * (norms / layer.scale)[:, None]
    power = np.zeros(len(norms))
    for quotient, mean in zip(quotients, means, strict=True):
        power += np.mean((e * quotient[:, None] * rows + d * mean[:, None]) ** 2, axis=1)
    return np.asarray(np.sqrt(power))
