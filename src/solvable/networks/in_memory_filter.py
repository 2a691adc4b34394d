"""Fit one filter to samples in memory: first and second moments, also with permuted labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from solvable.arrays import Array, as_on, namespace, random_stream, to_numpy
from solvable.networks.blocks import LabelCode
from solvable.networks.filters import (
    FilterReport,
    FilterSettings,
    FirstMoments,
    first_moments,
    fit_filter,
)
from solvable.networks.layers import double, squared_norms
from solvable.networks.permutation import DRAWS, Permutations
from solvable.networks.significance import relabelled
from solvable.operators.kernel_factor import factorise_kernel
from solvable.operators.label_moments import LabelMoments
from solvable.operators.signals import (
    ClassSignals,
    MomentSignals,
    SampleSignals,
    SignalOperators,
)

MOMENT_ROWS = 16384  # number of rows of features that are added up at a time


@dataclass(frozen=True, eq=False)
class LabelledFilter:
    """Labels of the training samples, and settings for drawing random labels."""

    labels: np.ndarray  # encoded labels, shape (n,)
    code: LabelCode
    seed: int  # seed of the draws
    null_replicates: int  # number of label draws from which each null is computed

    def explicit(
        self, rows: Array, labels: np.ndarray, chosen: FilterSettings, rng: Any
    ) -> tuple[np.ndarray, FilterReport]:
        """Fit a filter to features (n, P) with one label per row."""
        n, width = rows.shape
        if n < width:
            # For n < P eigenvectors are in the span of the rows: Z Z^T = R R^T, V = Z_p^T L^-T B (lofi 3)
            rows = double(rows)
            if chosen.centred:
                rows = rows - namespace(rows).mean(rows, axis=0)
            factor = factorise_kernel(to_numpy(rows @ rows.T))
            B, report = self.of_factor(factor.rows, labels, chosen, rng)
            return to_numpy(rows_of(rows, factor.landmarks).T @ as_on(factor.dual(B), rows)), report

        @cache
        def single() -> Array:
            # Every draw of the labels reads the features again, on their device.
            xp = namespace(rows)
            seen = rows
            if chosen.centred:
                mean = xp.astype(xp.sum(rows, axis=0, dtype=xp.float64) / n, rows.dtype)
                seen = rows - mean
            return xp.astype(seen, xp.float32, copy=False)

        code, means = self.code, None
        seen, coefficients, residual = code.mapped(labels), code.coefficients, None
        if chosen.residual and len(coefficients) == 1:
            weights = code.weights(labels)
            means = self._first_moments(single, weights, chosen)
            residual = _left(single(), weights) if len(means.strengths) else None
        if residual is not None:
            seen, coefficients = residual[:, 0], np.array([[0.0, 1.0]])
        classes = residual is None and not code.is_real
        moments = LabelMoments(width, code.n_groups if classes else 2, classes=classes)
        for start in range(0, n, MOMENT_ROWS):
            part = slice(start, start + MOMENT_ROWS)
            moments.add(rows[part], seen[part])
        return fit_filter(
            MomentSignals(moments, coefficients, centred=chosen.centred),
            chosen,
            n_samples=n,
            label_power=code.power if residual is None else float(np.mean(residual**2)),
            nulls=lambda: self._nulls(single(), weights=residual),
            rng=rng,
            permuted=self._permutations(single, residual),
            means=means,
        )

    def of_factor(
        self, R: np.ndarray, labels: np.ndarray, chosen: FilterSettings, rng: Any
    ) -> tuple[np.ndarray, FilterReport]:
        """Fit a filter to the rows of a kernel factor: infinite width, or fewer samples than features."""
        code, means, residual = self.code, None, None
        if chosen.residual:
            weights = code.weights(labels)
            means = self._first_moments(lambda: R, weights, chosen)
            residual = _left(R, weights) if len(means.strengths) else None
        classes = None
        if residual is None and not code.is_real and code.n_groups > 2:
            classes = ClassSignals(R, labels, code.n_groups)
        weights = code.weights(labels) if residual is None else residual
        return fit_filter(
            classes or SampleSignals(R, weights),
            chosen,
            n_samples=len(R),
            label_power=code.power if residual is None else float(np.sum(np.mean(residual**2, 0))),
            nulls=lambda: self._nulls(R, classes, residual),
            rng=rng,
            permuted=self._permutations(lambda: R, residual),
            means=means,
        )

    def _first_moments(
        self, rows: Callable[[], Array], weights: np.ndarray, chosen: FilterSettings
    ) -> FirstMoments:
        centred = weights - weights.mean(axis=0)
        means = to_numpy(rows().T @ as_on(centred / len(centred), rows())).astype(np.float64)
        permuted = self._permutations(rows)
        return first_moments(means, chosen, lambda: permuted.first_moments(range(DRAWS)), few=False)

    def _nulls(
        self,
        rows: Array,
        classes: ClassSignals | None = None,
        weights: np.ndarray | None = None,
    ) -> list[SignalOperators]:
        """Return the operators with random labels (the null); all locations of an image share a label."""
        found: list[SignalOperators] = []
        xp = namespace(rows)
        single = rows if classes else xp.astype(rows, xp.float32, copy=False)
        for draw in range(self.null_replicates):
            if weights is not None:  # residual labels are real numbers: permute them
                rng = random_stream(self.seed, "exchanged labels", draw)
                found.append(SampleSignals(single, rng.permutation(weights), formed=False))
                continue
            drawn = relabelled(self.code, self.labels, 0, seed=self.seed, replicate=draw)
            drawn = np.repeat(drawn, len(rows) // len(self.labels))
            if classes:  # each operator reads the rows of one class only, so it is cheap to form
                whole = classes.covariance
                found.append(ClassSignals(rows, drawn, self.code.n_groups, whole=whole))
            else:
                found.append(SampleSignals(single, self.code.weights(drawn), formed=False))
        return found

    def _permutations(
        self, rows: Callable[[], Array], weights: np.ndarray | None = None
    ) -> Permutations:
        """Filter operators with permuted labels; all locations of an image share a label."""
        each = self.code.weights(self.labels) if weights is None else weights

        def drawn(draws: Sequence[int]) -> np.ndarray:
            orders = [_order(self.seed, draw, len(each)) for draw in draws]
            table = each[np.stack(orders, axis=1)].reshape(len(each), -1)
            return table if weights is not None else np.repeat(table, len(rows()) // len(each), 0)

        return Permutations(rows, drawn)


def _order(seed: int, draw: int, size: int) -> np.ndarray:
    """Random order of rows in one permutation of the labels."""
    few_rows = 4_096  # few enough to keep the orders of several filters in memory
    return (_kept_order if size <= few_rows else _kept_order.__wrapped__)(seed, draw, size)


@lru_cache(maxsize=4 * DRAWS)
def _kept_order(seed: int, draw: int, size: int) -> np.ndarray:
    return random_stream(seed, "permuted labels", draw).permutation(size)


def _left(rows: Array, weights: np.ndarray) -> np.ndarray:
    """Residual weights of each sample in each signal after the first moments, shape (n, S)."""
    # Least squares of w on f_mu = (m - w_mu z_mu / n) . z_mu, m = (1/n) sum_nu w_nu z_nu: the first
    # moment without the sample itself, which would otherwise fit its own weight.
    weights = weights - weights.mean(axis=0)
    weighted = as_on(weights / len(weights), rows)
    projected = to_numpy(rows @ (rows.T @ weighted)).astype(np.float64)
    projected -= to_numpy(squared_norms(rows)).astype(np.float64)[:, None] * weights / len(weights)
    projected -= projected.mean(axis=0)
    left = weights - projected @ np.linalg.lstsq(projected, weights, rcond=None)[0]
    return np.asarray(left - left.mean(axis=0))


def rows_of(h: Array, numbers: np.ndarray) -> Array:
    """Select rows by index."""
    return (
        h[numbers] if isinstance(h, np.ndarray) else namespace(h).take(h, as_on(numbers, h), axis=0)
    )
