"""Compare the first gradient steps of a two-layer network with the spectral filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from solvable.arrays import check_integer, check_positive, is_integer, random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.fitting.gradient_descent import checked_steps, descend, full_batch
from solvable.networks.two_layer import TwoLayerNetwork
from solvable.operators.activations import dual_kernel

DENSE = 10
"""Rows of a matrix per wanted eigenvector below which all eigenvectors are computed."""


@dataclass(frozen=True)
class EarlyUpdate:
    """Hidden weights of a two-layer network after a number of gradient steps."""

    step: int  # number of completed steps
    weights: np.ndarray  # weights W(t), shape (d, p): one column per neuron
    initial_weights: np.ndarray  # initial weights W(0), shape (d, p)
    output_signs: np.ndarray  # fixed output weights a_j = +-1, shape (p,)

    @property
    def change(self) -> np.ndarray:
        r"""Change :math:`\Delta W=W(t)-W(0)`, shape (d, p)."""
        return self.weights - self.initial_weights


@dataclass(frozen=True)
class EarlyAlignment:
    r"""Overlaps of the early updates of a network with the span of the spectral filter.

    Attributes
    ----------
    steps : ndarray of int, shape (m,)
        Steps at which overlaps are computed.
    filter_overlap : ndarray of shape (m,)
        :math:`\|V_{\rm filter}^\top V_{\Delta W}\|_F^2/k`: mean squared overlap of the k leading
        directions of :math:`\Delta W` with the filter.
    principal_overlap : ndarray of shape (m,)
        Mean squared overlap with the k leading directions of :math:`\frac1n\sum xx^\top`.
    chance : float
        Mean squared overlap with a random subspace, :math:`k/d`.
    first_moment_overlap : ndarray of shape (m,)
        Modulus of the cosine between the leading direction of :math:`\Delta W` and
        :math:`u=\frac1n\sum yx`; NaN if u vanishes.
    neuron_correlation : ndarray of shape (m,)
        Correlation over neurons of :math:`a_j\,{\rm sign}\lambda_1` with the growth of
        :math:`(w_j\cdot v_1)^2`, where :math:`\lambda_1,v_1` is the first eigenpair of
        :math:`\hat C`; NaN without any growth.
    relative_change : ndarray of shape (m,)
        :math:`\|\Delta W\|_F/\|W(0)\|_F`.
    eigenvalues : ndarray
        Eigenvalues of the filter, by descending modulus, for inputs of mean squared norm 1.
    """

    steps: np.ndarray
    filter_overlap: np.ndarray
    principal_overlap: np.ndarray
    chance: float
    first_moment_overlap: np.ndarray
    neuron_correlation: np.ndarray
    relative_change: np.ndarray
    eigenvalues: np.ndarray = field(repr=False)


def early_updates(
    X: np.ndarray,
    y: np.ndarray,
    *,
    width: int = 2000,
    activation: str = "relu",
    steps: int | Sequence[int] = 1,
    step_size: float = 5.0,
    output_scale: float = 1e-3,
    seed: int = 0,
) -> Iterator[EarlyUpdate]:
    """Yield the hidden layer after full-batch gradient steps of a network with a small output."""
    inputs, labels = checked_samples(X, y)
    wanted = checked_steps(steps)
    check_positive(step_size=step_size)
    check_integer("width", width, 1)
    # w_j += eta a_j (1/n) sum (y - f(x)) sigma'(w_j.x) x, f(x) = eps/sqrt(p) sum_j a_j sigma(w_j.x);
    # eta absorbs the factor eps/sqrt(p) of the gradient (lofi 27).
    network = TwoLayerNetwork(activation, output_scale / float(np.sqrt(width)))
    rng = random_stream(seed, "early gradient")
    initial = rng.standard_normal((inputs.shape[1], width), dtype=np.float64).astype(inputs.dtype)
    signs = rng.choice(np.array([-1, 1], dtype=inputs.dtype), width)
    states = descend(
        network.gradient,
        (initial, signs),
        full_batch(inputs, labels),
        learning_rate=step_size,
        at=wanted,
    )
    return (EarlyUpdate(state.step, state.weights[0], initial, signs) for state in states)


def early_alignment(
    X: np.ndarray,
    y: np.ndarray,
    *,
    width: int = 2000,
    activation: str = "relu",
    steps: int | Sequence[int] = 1,
    step_size: float = 5.0,
    output_scale: float = 1e-3,
    n_directions: int = 11,
    seed: int = 0,
) -> EarlyAlignment:
    r"""Compare the early updates of a two-layer network with the filter of the same data.

    With a small output the residual is y, and :math:`\sigma'(t)\approx\tilde c+\tilde d\,t` gives

    .. math:: \dot w_j\propto a_j\,(\tilde c\,u+\tilde d\,\hat Cw_j),\qquad
        u=\frac1n\sum_\mu y_\mu x_\mu,\quad \hat C=\frac1n\sum_\mu y_\mu x_\mu x_\mu^\top,

    so that the update lies in the span of u and of the eigenvectors of :math:`\hat C` with the
    largest modulus: the filter (u first, :math:`\hat C` with u projected out).

    Notes
    -----
    Time :math:`4npd+pd^2` per step and at most :math:`10d^3` per step in ``steps``; memory
    :math:`np+3pd+d^2`. On MNIST (even against odd, n = p = 2000) the overlap at step 1 is 0.905
    with the filter, 0.77 with principal components, 0.014 by chance. Equation 27 of
    ``docs/derivations/lofi.md`` (lofi 27); tested in ``tests/networks/test_early_gradient.py``.
    """
    inputs, labels = checked_samples(X, y)
    updates = early_updates(
        inputs,
        labels,
        width=width,
        activation=activation,
        steps=steps,
        step_size=step_size,
        output_scale=output_scale,
        seed=seed,
    )
    dimension = inputs.shape[1]
    if not is_integer(n_directions, 1, min(dimension, width)):
        raise InvalidParameter(
            f"n_directions is {n_directions!r}; allowed: an integer from 1 to "
            f"{min(dimension, width)}, the smaller of the input dimension and the width."
        )
    span, values, has_mean, first = filter_span(inputs, labels, n_directions)
    principal = leading_vectors(inputs.T @ inputs, n_directions)
    rows = []
    for update in updates:
        change = update.change.astype(np.float64)
        leading = leading_vectors(change @ change.T, n_directions)
        rows.append(
            (
                update.step,
                mean_overlap(span, leading),
                mean_overlap(principal, leading),
                abs(span[:, 0] @ leading[:, 0]) if has_mean else np.nan,
                _neuron_correlation(update, *first),
                np.linalg.norm(change) / np.linalg.norm(update.initial_weights),
            )
        )
    table = np.array(rows, dtype=np.float64).T
    return EarlyAlignment(
        steps=table[0].astype(int),
        filter_overlap=table[1],
        principal_overlap=table[2],
        chance=n_directions / dimension,
        first_moment_overlap=table[3],
        neuron_correlation=table[4],
        relative_change=table[5],
        eigenvalues=values,
    )


def limit_of_first_step(
    X: np.ndarray, y: np.ndarray, *, n_directions: int = 11
) -> tuple[float, float]:
    """First step of an infinitely wide ReLU network: overlaps with filter and principal components."""
    inputs, labels = checked_samples(X, y)
    # dW dW^T / p -> (1/n²) sum y_m y_n E[sigma'(w.x_m) sigma'(w.x_n)] x_m x_n^T   (lofi 35); the
    # derivative of ReLU is the step function, whose dual kernel has a closed form.
    inner = inputs @ inputs.T
    kernel = dual_kernel("step", inner, np.diag(inner), np.diag(inner))
    weighted = inputs * labels[:, None]
    leading = leading_vectors(weighted.T @ kernel @ weighted, n_directions)
    span = filter_span(inputs, labels, n_directions)[0]
    principal = leading_vectors(inputs.T @ inputs, n_directions)
    return mean_overlap(span, leading), mean_overlap(principal, leading)


def leading_vectors(matrix: np.ndarray, count: int) -> np.ndarray:
    """Eigenvectors with the largest eigenvalues, in descending order."""
    matrix = matrix.astype(np.float64)
    if count < len(matrix) // DENSE:
        return _by_lanczos(matrix, count, "LA")[1][:, ::-1]
    return np.asarray(np.linalg.eigh(matrix)[1][:, ::-1][:, :count])


def mean_overlap(basis: np.ndarray, directions: np.ndarray) -> float:
    """Mean squared overlap of directions with the span of an orthonormal basis."""
    return float(np.sum((basis.T @ directions) ** 2) / directions.shape[1])


def filter_span(
    inputs: np.ndarray, labels: np.ndarray, n_directions: int
) -> tuple[np.ndarray, np.ndarray, bool, tuple[float, np.ndarray]]:
    """Filter's span, eigenvalues, whether u is column 0, and the first eigenpair with u kept in."""
    samples, y = inputs.astype(np.float64), labels.astype(np.float64)
    moment = y @ samples / len(y)
    operator = (samples * y[:, None]).T @ samples / len(y)
    length = float(np.linalg.norm(moment))
    # The inputs have mean squared norm 1, so that |u| is at most the root mean square of y; far
    # below this bound u is only rounding error.
    has_mean = length > 1e-7 * float(np.sqrt(np.mean(y**2)))
    values, vectors = _by_modulus(operator, n_directions)
    first = float(values[0]), vectors[:, 0]
    columns = []
    if has_mean:
        u = moment / length
        columns.append(u[:, None])
        # Reflection H = I - 2 v v^T that maps the first axis to u: its other columns are orthogonal to u.
        v = u.copy()
        v[0] += np.copysign(1.0, u[0])
        v /= np.linalg.norm(v)
        rotated = operator - 2 * np.outer(v, v @ operator)
        rotated -= 2 * np.outer(rotated @ v, v)
        values, rotation = _by_modulus(rotated[1:, 1:], n_directions - 1)
        vectors = np.vstack([np.zeros(rotation.shape[1]), rotation])
        vectors -= 2 * np.outer(v, v @ vectors)
    span = np.hstack([*columns, vectors])[:, :n_directions]
    return span, values[: n_directions - has_mean], has_mean, first


def _by_modulus(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenpairs with the largest moduli, in descending order."""
    if 0 < count < len(matrix) // DENSE:
        values, vectors = _by_lanczos(matrix, count, "LM")
    else:
        values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    return values[order], vectors[:, order]


def _by_lanczos(
    matrix: np.ndarray, count: int, which: Literal["LA", "LM"]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a few extreme eigenpairs of a large matrix, faster than all of them."""
    from scipy.sparse.linalg import eigsh

    # A fixed start makes the result reproducible.
    found: tuple[np.ndarray, np.ndarray] = eigsh(
        matrix, count, which=which, v0=np.ones(len(matrix))
    )
    return found


def _neuron_correlation(update: EarlyUpdate, value: float, vector: np.ndarray) -> float:
    """Correlation over neurons of a_j sign(lambda_1) with the growth along v_1."""
    signs = update.output_signs.astype(np.float64)
    growth = (vector @ update.weights) ** 2 - (vector @ update.initial_weights) ** 2
    if np.ptp(growth) == 0 or np.ptp(signs) == 0:
        return float("nan")
    return float(np.corrcoef(signs * np.sign(value), growth)[0, 1])


def checked_samples(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs scaled to mean squared norm 1, and labels, in the same floating type."""
    inputs, labels = np.asarray(X), np.asarray(y)
    if inputs.ndim != 2 or labels.shape != inputs.shape[:1] or len(labels) < 2:
        raise InvalidData(
            f"X has shape {inputs.shape} and y has shape {labels.shape}; allowed: (n, d) and (n,) "
            "with n of at least 2."
        )
    if not (np.issubdtype(inputs.dtype, np.number) and np.issubdtype(labels.dtype, np.number)):
        raise InvalidData(
            f"X has type {inputs.dtype} and y has type {labels.dtype}; allowed: real numbers. "
            "Encode classes as -1 and 1."
        )
    kind = np.float32 if inputs.dtype == np.float32 else np.float64
    inputs, labels = inputs.astype(kind), labels.astype(kind)
    if not (np.isfinite(inputs).all() and np.isfinite(labels).all()):
        raise InvalidData(
            "X or y contains NaN or infinity; allowed: finite numbers. Drop those rows."
        )
    norm = float(np.sqrt(np.mean(np.sum(inputs.astype(np.float64) ** 2, axis=1))))
    if norm == 0 or not labels.any():
        raise InvalidData("X or y is zero throughout, so that no gradient is left to follow.")
    return inputs / kind(norm), labels
