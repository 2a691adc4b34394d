"""Attention matrices from symmetric logits, and the proximal step of the squared loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeGuard

import numpy as np

from solvable.models.attention.single_head.two_tokens import Responses, gap_proximal, gap_responses


class Output(Protocol):
    """Interface of an output that depends on k independent indices with equal variances."""

    @property
    def size(self) -> int:
        """Number k of indices per sample."""

    def values(self, indices: np.ndarray) -> np.ndarray:
        """Outputs (n, o) for indices (n, k)."""

    def jacobian(self, indices: np.ndarray) -> np.ndarray:
        """Derivatives (n, o, k) of the outputs with respect to the indices."""

    def hessian(self, indices: np.ndarray, labels: np.ndarray, *, convex: bool) -> np.ndarray:
        """Second derivative (n, k, k) of the squared loss; `convex` keeps only its positive terms."""


@dataclass(frozen=True)
class SoftmaxOutput:
    """Row-wise softmax of the symmetric logits of T tokens, as a function of k contrasts."""

    tokens: int
    inverse_temperature: float = 1.0

    @property
    def size(self) -> int:
        """Number of contrasts, T (T + 1) / 2 - 1."""
        return self.tokens * (self.tokens + 1) // 2 - 1

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Token pairs a <= b of the indices."""
        return np.triu_indices(self.tokens)

    @cached_property
    def variances(self) -> np.ndarray:
        """Variance factors v: 2 on the diagonal, 1 off the diagonal."""
        return np.where(self.pairs[0] == self.pairs[1], 2.0, 1.0)

    @cached_property
    def contrasts(self) -> np.ndarray:
        """Orthonormal columns C (K, k); indices h have the contrasts s = C^T h / sqrt(v)."""
        # The softmax does not change if all logits shift by the same amount, which moves h / sqrt(v)
        # along 1 / sqrt(v). Orthogonal directions do not depend on the shift.
        shift = 1 / np.sqrt(self.variances)
        return np.asarray(np.linalg.svd(shift[None])[2][1:].T)

    @cached_property
    def _logits(self) -> np.ndarray:
        """Inverse temperature times the derivative (T, T, k) of logits with respect to contrasts."""
        rows, columns = self.pairs
        slope = np.zeros((self.tokens, self.tokens, self.size))
        slope[rows, columns] = slope[columns, rows] = (
            self.inverse_temperature * np.sqrt(self.variances)[:, None] * self.contrasts
        )
        return slope

    @cached_property
    def gaps(self) -> np.ndarray:
        """Derivative (2, k) of the second logit of each row minus the first, for two tokens."""
        return np.asarray(self._logits[:, 1] - self._logits[:, 0])

    def _softmax(self, indices: np.ndarray) -> np.ndarray:
        T = self.tokens
        if T == 2:
            # for two tokens the softmax reduces to the logistic function
            second = 0.5 + 0.5 * np.tanh(indices @ self.gaps.T / 2)
            return np.stack([1 - second, second], axis=2)
        logits = (indices @ self._logits.reshape(T * T, -1).T).reshape(-1, T, T)
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        return np.asarray(weights / weights.sum(axis=2, keepdims=True))

    def values(self, indices: np.ndarray) -> np.ndarray:
        """Attention matrices as vectors (n, T²), row after row."""
        return self._softmax(indices).reshape(len(indices), -1)

    def _centred(self, p: np.ndarray) -> np.ndarray:
        """Derivatives (n, T, T, k) of the logits minus their attention-weighted mean in each row."""
        # attention-weighted mean sum_b p_ab l_abk in row a
        mean = sum(p[:, :, b, None] * self._logits[:, b] for b in range(self.tokens))
        return np.asarray(self._logits[None] - mean[:, :, None, :])

    def jacobian(self, indices: np.ndarray) -> np.ndarray:
        """Derivatives of the attention weights with respect to the contrasts."""
        p = self._softmax(indices)
        if self.tokens == 2:
            # the second weight rises by p (1 - p) times the gap of the logits, and the first falls
            rise = (p[:, :, 0] * p[:, :, 1])[..., None] * self.gaps
            return np.stack([-rise, rise], axis=2).reshape(len(p), -1, self.size)
        slope = p[..., None] * self._centred(p)
        return slope.reshape(len(p), -1, self.size)

    def hessian(self, indices: np.ndarray, labels: np.ndarray, *, convex: bool) -> np.ndarray:
        """Second derivative of the squared loss with respect to the contrasts."""
        # 2 sum_ab p (p + e - <e>_a) l l^T with errors e = p - y and centred derivatives l of the logits;
        # `convex` drops the terms with negative weight
        p = self._softmax(indices)
        error = p - labels.reshape(p.shape)
        weights = 2 * p * (p + error - np.sum(p * error, axis=2, keepdims=True))
        if convex:
            weights = np.maximum(weights, 0.0)
        if self.tokens == 2:
            # the derivative of the logits minus their mean is -p_2 and p_1 times the gap
            squares = np.sum(weights * p[:, :, ::-1] ** 2, axis=2)
            products = self.gaps[:, :, None] * self.gaps[:, None]
            return (squares @ products.reshape(2, -1)).reshape(-1, self.size, self.size)
        slope = self._centred(p).reshape(len(p), -1, self.size)
        return np.asarray(slope.transpose(0, 2, 1) @ (weights.reshape(len(p), -1, 1) * slope))


def turn_of(output: SoftmaxOutput) -> np.ndarray:
    """Matrix (K, k) from indices to contrasts; its transpose maps forces on contrasts to messages."""
    return np.asarray(output.contrasts / np.sqrt(output.variances)[:, None])


def losses(output: Output, indices: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Squared error of each sample's output."""
    error = labels - output.values(indices)
    return np.asarray(np.einsum("no,no->n", error, error))


def forces(output: Output, indices: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Forces on the indices: the negative derivatives of the squared error."""
    error = labels - output.values(indices)
    return np.asarray(2 * np.einsum("nok,no->nk", output.jacobian(indices), error))


def _paired(output: Output) -> TypeGuard[SoftmaxOutput]:
    """Return True for the softmax of two tokens, which has a faster route."""
    return isinstance(output, SoftmaxOutput) and output.tokens == 2


def responses(
    output: Output,
    teacher: Output,
    s: np.ndarray,
    labels: np.ndarray,
    seen: np.ndarray,
    variance: float,
) -> Responses:
    """Forces at proximal points s, and means of their derivatives over the samples."""
    if _paired(output) and _paired(teacher):
        ratio = teacher.inverse_temperature / output.inverse_temperature
        return gap_responses(output.gaps, s, labels, variance, output.gaps @ seen.T, ratio)
    curvature = output.hessian(s, labels, convex=False)
    # s = omega + Sigma g(s): ds/domega = P = (1 + Sigma H)^-1, dg/domega = -H P
    step = inverses(np.eye(output.size) + variance * curvature)
    change = curvature @ step
    cross = output.jacobian(s).transpose(0, 2, 1) @ teacher.jacobian(seen)
    return Responses(
        forces=forces(output, s, labels),
        overlap=2 * float(np.mean(np.einsum("nij,nji->n", step, cross))),
        response=float(np.mean(np.einsum("nii->n", change))),
        growth=float(np.mean(np.sum(change**2, axis=(1, 2)))),
        loss=float(np.mean(losses(output, s, labels))),
    )


def proximal(
    output: Output,
    labels: np.ndarray,
    omega: np.ndarray,
    variance: float,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Minimise V (y - sigma(s))² + (s - omega)² / 2 by damped Newton steps."""
    if _paired(output):
        return gap_proximal(output.gaps, labels, omega, variance, omega if start is None else start)
    s = np.array(omega if start is None else start)
    active = np.arange(len(s))
    for _ in range(60):
        here, y, centre = s[active], labels[active], omega[active]
        gradient = here - centre - variance * forces(output, here, y)
        wrong = _norms(gradient) > 1e-9 * (1 + _norms(here))
        if not wrong.any():
            break
        active, here, y, centre, gradient = (
            part[wrong] for part in (active, here, y, centre, gradient)
        )
        s[active] = _stepped(output, y, centre, variance, here, gradient)
    return s


def _norms(rows: np.ndarray) -> np.ndarray:
    """Norms of the rows, much faster than a sum over a short axis."""
    return np.asarray(np.sqrt(np.einsum("nk,nk->n", rows, rows)))


def _stepped(
    output: Output,
    labels: np.ndarray,
    omega: np.ndarray,
    variance: float,
    s: np.ndarray,
    gradient: np.ndarray,
) -> np.ndarray:
    """Newton step if this step lowers the objective, else a halved step with the convexified Hessian."""

    def objective(place: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        near = _norms(place - omega[chosen]) ** 2 / 2
        return np.asarray(variance * losses(output, place, labels[chosen]) + near)

    everything = np.arange(len(s))
    before = objective(s, everything)
    unit = np.eye(s.shape[1])
    step = -_solve(unit + variance * output.hessian(s, labels, convex=False), gradient)
    moved = s + step
    # allow for rounding errors when objectives are compared
    slack = 1e-13 * (1 + np.abs(before))
    falls = np.einsum("nk,nk->n", step, gradient)
    bad = (falls >= 0) | ~(objective(moved, everything) <= before + 1e-4 * falls + slack)
    left = np.flatnonzero(bad)
    if left.size == 0:
        return moved
    curved = unit + variance * output.hessian(s[left], labels[left], convex=True)
    step = -_solve(curved, gradient[left])
    length = np.ones(left.size)
    for _ in range(30):
        moved[left] = s[left] + length[:, None] * step
        falls = length * np.einsum("nk,nk->n", step, gradient[left])
        rising = objective(moved[left], left) > before[left] + 1e-4 * falls + slack[left]
        if not rising.any():
            break
        length = np.where(rising, length / 2, length)
    return moved


def inverses(matrices: np.ndarray) -> np.ndarray:
    """Inverses of small symmetric matrices."""
    if matrices.shape[1] != 2:
        return np.asarray(np.linalg.inv(matrices))
    a, b, c = matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 1, 1]
    turned = np.stack([np.stack([c, -b], axis=1), np.stack([-b, a], axis=1)], axis=1)
    return np.asarray(turned / (a * c - b**2)[:, None, None])


def _solve(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Solve many small linear systems, with Cramer's rule for two unknowns."""
    if vectors.shape[1] == 2:
        a, b, c = matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 1, 1]
        x, y = vectors.T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(
                np.stack([c * x - b * y, a * y - b * x], axis=1) / (a * c - b**2)[:, None]
            )
    return np.asarray(np.linalg.solve(matrices, vectors[..., None])[..., 0])
