r"""Population moment operator of cubic features, from the chaos components of the mapped label.

P[U] = E[T (f_U F - U)] follows from tau_m = E[T He_m(x)], m = 6, 4, 2 (the last two for the plain
operator alone): tau_6 = sum_i c_i / 2 sym(A_i (x) A_i) 6! / 6, of whose twenty pairings two are the
spike c_i A_i A_i^T and eighteen the operator 9 c_i C_i; tau_4 and tau_2 are contracted with U.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.moment_spectrum.cubic_forms import tensors_of
from solvable.operators._cubic import Cubic


@dataclass(frozen=True)
class CubicOperator:
    """The operator as a map on vectors; parts that are None are zero."""

    tensors: np.ndarray  # A_i, (p, d, d, d)
    sixth: np.ndarray  # c_i, (p,)
    fourth: np.ndarray | None = None  # tau_4, (d, d, d, d)
    second: np.ndarray | None = None  # tau_2, (d, d)
    isotropic: float = 0.0  # further part of tau_6 along sym(I I I)
    paired: np.ndarray | None = None  # and along sym(I I H): H, (d, d)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Image of columns (D, k), the spikes left out."""
        d, count = self.tensors.shape[1], vectors.shape[1]
        if not count:
            return vectors
        engine = Cubic(d)
        U = np.asarray(engine.to_tensor(vectors)).T.reshape(count, d, d, d)
        image = np.zeros((count, d, d * d))
        for c, A in zip(self.sixth, self.tensors, strict=True):
            # 9 c sym U_abc A_abe A_cfg
            pairs = U.reshape(count * d, d * d) @ A.reshape(d, d * d).T
            image += 9 * c * (pairs.reshape(count, d, d).transpose(0, 2, 1) @ A.reshape(d, d * d))
        if self.second is not None:
            # 3 sym U_abc tau_cd
            image += 3 * (U.reshape(count, d * d, d) @ self.second).reshape(count, d, d * d)
        if self.fourth is not None:
            # (3/2) sym U_abc tau_abde
            pairs = self.fourth.reshape(d * d, d * d) @ U.reshape(count, d * d, d)
            image += 1.5 * pairs.reshape(count, d, d * d)
        image += self._traced(U).reshape(count, d, d * d)
        return np.asarray(engine.from_tensor(image.reshape(count, -1).T))

    def _traced(self, U: np.ndarray) -> np.ndarray:
        """Images (k, d, d, d) by the parts of tau_6 / 6 with two or three traces."""
        d = U.shape[1]
        t = np.einsum("kaac->kc", U)
        # Of 15 pairings of six slots 6 give U and 9 sym(I t).
        image = self.isotropic / 15 * U
        vector = self.isotropic / 10 * t
        if self.paired is not None:
            # Of 45 with H in one pair, 9 give sym(I (H : U)), 9 sym(I H t), 9 sym(H t), 18 sym(U H).
            H = self.paired / 6
            image = image + 2 / 5 * (U @ H)
            image = image + t[:, :, None, None] * (H / 5)
            vector = vector + (U.reshape(-1, d, d * d) @ H.reshape(d * d) + t @ H) / 5
        return np.asarray(image + vector[:, :, None, None] * np.eye(d))


def fourth_chaos(tensors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """tau_4 of sum_i c_i (f_i^2 - 1) / 2, which is 18 sum_i c_i sym(A_i (x)_1 A_i)."""
    d = tensors.shape[1]
    pairs = tensors.transpose(1, 2, 0, 3).reshape(d * d, -1)
    W = ((pairs * np.repeat(weights, d)) @ pairs.T).reshape(d, d, d, d)
    return 6 * (W + W.transpose(0, 2, 1, 3) + W.transpose(0, 3, 2, 1))


def second_chaos(tensors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """tau_2 of sum_i c_i (f_i^2 - 1) / 2, which is 3 sum_i c_i A_i (x)_2 A_i."""
    d = tensors.shape[1]
    last = tensors.transpose(3, 0, 1, 2).reshape(d, -1)
    return 3 * (last * np.repeat(weights, d * d)) @ last.T


def isotropic_fourth(dimension: int) -> np.ndarray:
    """sym(I (x) I)."""
    pair = np.multiply.outer(np.eye(dimension), np.eye(dimension))
    return np.asarray((pair + pair.transpose(0, 2, 1, 3) + pair.transpose(0, 3, 2, 1)) / 3)


def paired_fourth(matrix: np.ndarray) -> np.ndarray:
    """sym(I (x) H) for a symmetric matrix H."""
    pair = np.multiply.outer(np.eye(len(matrix)), matrix)
    orders = ((0, 1, 2, 3), (2, 3, 0, 1), (0, 2, 1, 3), (2, 0, 3, 1), (0, 2, 3, 1), (2, 0, 1, 3))
    return np.asarray(sum(pair.transpose(order) for order in orders) / 6)


def coupling_directions(directions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Where each chaos of the index takes A_i to, outside the span of the features: (3, D, p)."""
    tensors, c = tensors_of(directions), np.sqrt(2) * weights
    nothing = np.zeros_like(c)
    parts = (
        CubicOperator(tensors, c),
        CubicOperator(tensors, nothing, fourth=fourth_chaos(tensors, c)),
        CubicOperator(tensors, nothing, second=second_chaos(tensors, c)),
    )
    images = np.stack([part(directions) for part in parts])
    basis = np.linalg.qr(directions)[0]
    return np.asarray(images - basis @ (basis.T @ images))


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of an operator, with their share of all and of each feature."""

    atoms: np.ndarray  # (k,)
    shares: np.ndarray  # (k,), summing to 1
    profiles: np.ndarray  # (p, k), rows summing to 1

    def equal_atoms(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """About so many equally likely atoms, at least one for each, and the profiles on them."""
        copies = np.maximum(np.round(self.shares * count), 1).astype(int)
        return np.repeat(self.atoms, copies), np.repeat(self.profiles / copies, copies, axis=1)

    def grouped(self, alone: int, groups: int) -> Spectrum:
        """Neighbours inside put together; so many at each end stay alone."""
        k = self.atoms.size
        if k <= 2 * alone + groups:
            return self
        inner = np.linspace(alone, k - alone, groups, endpoint=False).astype(int)
        starts = np.concatenate([np.arange(alone), inner, np.arange(k - alone, k)])
        shares = np.add.reduceat(self.shares, starts)
        atoms = np.add.reduceat(self.shares * self.atoms, starts) / shares
        return Spectrum(atoms, shares, np.add.reduceat(self.profiles, starts, axis=1))


@dataclass(frozen=True)
class Compressed:
    """An operator on a space that holds the features: all of it, or a Krylov space."""

    matrix: np.ndarray  # (k, k)
    features: np.ndarray  # A in its basis, (k, p)
    probes: np.ndarray  # random vectors orthogonal to A in its basis, (k, r); none if it is all
    n_features: int  # D

    def spectrum(self, update: np.ndarray | None = None) -> Spectrum:
        """Spectrum of the matrix plus A H A^T."""
        matrix = self.matrix
        if update is not None:
            matrix = matrix + self.features @ update @ self.features.T
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        profiles = (vectors.T @ self.features).T ** 2
        if not self.probes.size:
            return Spectrum(values, np.full(values.size, 1 / values.size), profiles)
        rest = np.mean((vectors.T @ self.probes) ** 2, axis=1)
        p, D = len(profiles), self.n_features
        return Spectrum(values, (profiles.sum(axis=0) + (D - p) * rest) / D, profiles)


def compressed(
    operator: Callable[[np.ndarray], np.ndarray], directions: np.ndarray, rng: np.random.Generator
) -> Compressed:
    """The operator as a matrix up to 600 features, on a block Krylov space of 240 beyond."""
    D, p = directions.shape
    if D <= 600:
        return Compressed(operator(np.eye(D)), directions, np.empty((D, 0)), D)
    probes = rng.standard_normal((D, 2))
    block = np.linalg.qr(np.concatenate([directions, probes], axis=1))[0]
    basis, images = block, operator(block)
    width = block.shape[1]
    while basis.shape[1] + width <= max(240, 4 * width):
        block = images[:, -width:]
        for _ in range(2):
            block = block - basis @ (basis.T @ block)
        block = np.linalg.qr(block)[0]
        basis = np.concatenate([basis, block], axis=1)
        images = np.concatenate([images, operator(block)], axis=1)
    start = np.eye(basis.shape[1])[:, :width]
    return Compressed(basis.T @ images, basis.T @ directions, start[:, p:], D)
