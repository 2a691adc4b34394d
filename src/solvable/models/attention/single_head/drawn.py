"""Drawn samples of two token forms, from which the first order in 1/d of a trained head follows."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from solvable.arrays import random_stream
from solvable.models.attention.single_head.evolution import Learned, kept
from solvable.models.attention.single_head.outputs import SoftmaxOutput, turn_of
from solvable.spectra.measures import power_law

BLOCK = 256
"""Number of samples whose products of tokens are in memory at once."""


class Drawn(NamedTuple):
    """A drawn target with noise and samples, the same for every evaluation."""

    target: np.ndarray
    noise: np.ndarray
    tokens: np.ndarray
    indices: np.ndarray
    label_noise: np.ndarray


@lru_cache(maxsize=8)
def drawn_target(
    rank_ratio: float, exponent: float, size: int, output: SoftmaxOutput, samples: int, number: int
) -> Drawn:
    """Target, noise and samples number `number`."""
    # fixed seeds, so that equal parameters give equal predictions
    rng = random_stream(number, "finite size of a head")
    rank = max(1, round(rank_ratio * size))
    W = rng.standard_normal((size, rank))
    Z = rng.standard_normal((size, size))
    target = W @ W.T / np.sqrt(rank * size)
    if exponent:
        target = np.diag(power_law(dimension=size, exponent=exponent).nodes)
    tokens = rng.standard_normal((samples, output.tokens, size))
    return Drawn(
        target=target,
        noise=(Z + Z.T) / np.sqrt(2 * size),
        tokens=tokens.astype(np.float32),
        indices=_contrasts(output, tokens @ target @ tokens.transpose(0, 2, 1), target),
        label_noise=rng.standard_normal((samples, output.size)),
    )


def _contrasts(output: SoftmaxOutput, products: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Contrasts of the samples, computed from the products x_a^T S x_b."""
    rows, columns = output.pairs
    h = products[:, rows, columns] - np.where(rows == columns, np.trace(matrix), 0.0)
    return np.asarray(h / np.sqrt(len(matrix)) @ turn_of(output))


class Functions(NamedTuple):
    """Functions of the eigenvalues y of a drawn target matrix plus noise matrix."""

    vectors: np.ndarray
    kept: np.ndarray
    divided: np.ndarray
    """Divided differences D_ij = (f_i - f_j) / (y_i - y_j) of f = (y - epsilon)_+."""
    tilts: np.ndarray
    """For each i, the sum over j and k of the second divided differences of 2 f at y_i, y_j, y_k."""


def learned_functions(drawn: Drawn, learned: Learned) -> Functions:
    """Functions of the eigenvalues of target plus noise at the learned noise and threshold."""
    y, vectors = np.linalg.eigh(drawn.target + learned.law.noise * drawn.noise)
    values = kept(y, learned.threshold)
    gaps = y[:, None] - y[None]
    np.fill_diagonal(gaps, 1.0)
    divided = (values[:, None] - values[None]) / gaps
    np.fill_diagonal(divided, (y > learned.threshold).astype(float))
    rows = divided.sum(axis=1)
    # sum_jk f[i, j, k] = sum_k (sum_j D_ij - sum_j D_jk) / (y_i - y_k); the term k = i uses the
    # difference in j instead
    differences = (rows[:, None] - rows[None]) / gaps
    np.fill_diagonal(differences, 0.0)
    same = (np.diag(divided)[:, None] - divided) / gaps
    np.fill_diagonal(same, 0.0)
    tilts = 2 * (differences.sum(axis=1) + same.sum(axis=1))
    return Functions(vectors, values, divided, tilts)


def sample_forms(
    output: SoftmaxOutput, drawn: Drawn, functions: Functions
) -> tuple[np.ndarray, np.ndarray]:
    """Pair forms (n, K, 2) of kept eigenvalues and tilts, and leverages (n, k, k) over the response."""
    # g V g = <P, D P> 2 / (d Sigma^) with P = X^T Gamma X / sqrt(d), divided by the sum of the D_ij off
    # the diagonal; sum_ij D_ij P_ij² = sum Gamma_ab Gamma_ce <x_a x_c, D x_b x_e>
    rows, columns = output.pairs
    n, T, d = drawn.tokens.shape
    K, k = rows.size, output.size
    off = functions.divided - np.diag(np.diag(functions.divided))
    # rounding to single precision changes each form by 1e-6 of its size, and blocks stay in the cache
    single = np.float32
    vectors, both = functions.vectors.astype(single), off.astype(single)
    ends = np.stack([functions.kept, functions.tilts], axis=1).astype(single)
    sums, inner = np.empty((n, K, 2), single), np.empty((n, K, K), single)
    for start in range(0, n, BLOCK):
        some = slice(start, start + BLOCK)
        x = (drawn.tokens[some].reshape(-1, d) @ vectors).reshape(-1, T, d)
        products = x[:, rows] * x[:, columns]
        flat = products.reshape(-1, d)
        sums[some] = (flat @ ends).reshape(-1, K, 2)
        inner[some] = (flat @ both).reshape(-1, K, d) @ products.transpose(0, 2, 1)
    forms, number = forms_of(output, turn_of(output).T), np.zeros((T, T), dtype=int)
    number[rows, columns] = number[columns, rows] = np.arange(K)
    fold = np.eye(K)[number]
    turn = np.einsum("iab,jce,acK,beL->KLij", forms, forms, fold, fold, optimize=True)
    # E P_ij² = tr Gamma² = sum v g² / 2 for i different from j; nothing kept has no leverage
    leverages = (inner.reshape(n, K * K) @ turn.reshape(K * K, -1)).reshape(n, k, k)
    leverages /= off.sum() or 1.0
    return sums.astype(np.float64), leverages


def forms_of(output: SoftmaxOutput, messages: np.ndarray) -> np.ndarray:
    """Symmetric matrices Gamma such that X^T Gamma X / sqrt(d) is the sum of messages times sensors."""
    rows, columns = output.pairs
    forms = np.zeros((len(messages), output.tokens, output.tokens))
    forms[:, rows, columns] += messages / 2
    forms[:, columns, rows] += messages / 2
    return forms


def products_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of many small matrices, faster than `a @ b`."""
    return np.asarray(sum(a[:, :, i, None] * b[:, i, None] for i in range(a.shape[2])))


def entries_of(output: SoftmaxOutput, matrices: np.ndarray) -> np.ndarray:
    """Entries (a, b) with a <= b of symmetric matrices."""
    rows, columns = output.pairs
    return np.asarray(matrices[:, rows, columns])
