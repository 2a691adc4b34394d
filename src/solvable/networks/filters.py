r"""One filter: the directions of the features in which the label has a second moment."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.errors import InvalidParameter, NotConverged, unknown_choice
from solvable.networks.permutation import (
    DRAWS,
    KEPT_DRAWS,
    Permutations,
    draws_exceeded,
    linear_ratios,
)
from solvable.networks.significance import FIRST_RATIO, outside, significant_directions
from solvable.operators.modulus import (
    ModulusPairs,
    block_krylov,
    dense_by_modulus,
    with_fixed_signs,
)
from solvable.operators.signals import SignalOperators

MultiClass: TypeAlias = Literal["sum-of-squares", "alternating"]
"""Rule that combines the operators of more than two classes into one operator."""

FilterSolver: TypeAlias = Literal["auto", "dense", "lanczos", "krylov"]
"""Solver of the eigenpairs."""


@dataclass(frozen=True)
class FilterReport:
    """Strengths of a filter's directions, and their ratios to strengths with random labels (the null)."""

    # lambda_j of the kept directions, by descending modulus; for many classes the root of the eigenvalue
    # of sum_c C_c², which has no sign; shape (k,)
    eigenvalues: np.ndarray
    variances: np.ndarray  # variance s_j = v_j^T Sigma v_j along each direction
    # tr Sigma_res / s_j, Sigma_res the covariance without the stronger directions
    residual_dimensions: np.ndarray
    # E[y²] s_j tr Sigma_res / lambda_j²: samples at which a direction of this strength is expected to
    # emerge; an underestimate if the eigenvalue is mostly noise (first term of n_k in lofi 22)
    emergence_samples: np.ndarray
    # grid of numbers k of stronger directions removed before the null is computed, shape (g,)
    null_counts: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))
    # |lambda_(k+1)| over the mean largest strength of random labels after the removal, for each signal
    # (class); NaN beyond the first ratio that is not significant; shape (S, g)   (lofi 29)
    null_ratios: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    n_linear: int = 0  # number of first-moment columns before the directions
    # number of directions whose strength exceeds their null; 0 if permuted labels reach the largest
    # strength, though directions may be kept; None if no test was made
    n_significant: int | None = None
    n_samples: int = 0
    solver: str = "krylov"
    largest_residual: float = (
        0.0  # largest residual of the eigenpairs, relative to the largest eigenvalue
    )
    # singular values of the label-weighted means of the features, shape (n_linear,)
    linear_strengths: np.ndarray = field(default_factory=lambda: np.empty(0))
    # linear singular values over their mean maximum with random labels; empty without a test
    linear_ratios: np.ndarray = field(default_factory=lambda: np.empty(0))
    # length of each signal's label-weighted mean over its length with random labels, shape (S,)
    mean_ratios: np.ndarray = field(default_factory=lambda: np.empty(0))
    # number of kept directions: those whose ratio to the null is significant, and at least 1 if the
    # strongest exceeds 19 permutations of the labels, as a weak feature is more useful than none
    n_above: int = 0
    n_linear_significant: int = (
        0  # number of first-moment columns stronger than in all permutations
    )
    # null ratio above which the strongest direction is significant
    first_ratio: float = FIRST_RATIO

    @property
    def strengths(self) -> np.ndarray:
        """Strength of each kept column: singular values of the first moments, then eigenvalues."""
        return np.concatenate([self.linear_strengths, self.eigenvalues])

    @property
    def n_kept_above(self) -> int:
        """Number of kept columns that are significant by their ratio or by 19 permutations."""
        return len(self.linear_ratios) + self.n_above

    @property
    def n_told(self) -> int:
        """Number of significant columns: first moments plus directions above all permutations."""
        return self.n_linear_significant + (self.n_significant or 0)

    @property
    def missed(self) -> float:
        """Share of the hidden directions that the kept ones are expected to miss; 1 if none is kept."""
        # If a kept u has squared overlap q² with a hidden w: E w w^T = q² u u^T + (1 - q²) I / P. A first
        # moment r times as long as its null has q² = 1 - 1 / r²; an eigenvalue r times the edge of its
        # bulk has q² = 1 - (s / l)² with (l / s + s / l) / 2 = r (spiked matrix). Mean weighted by r.
        if not self.n_kept_above:
            return 1.0
        known = ~np.isnan(self.null_ratios).all(axis=0)
        tested = np.maximum(np.nanmax(self.null_ratios[:, known], axis=0, initial=0.0), 1.0)
        ranks = np.arange(1, self.n_above + 1)
        ratios = (
            np.interp(ranks, self.null_counts[known] + 1, tested) if self.n_above else np.ones(0)
        )
        lost = (ratios - np.sqrt(ratios**2 - 1)) ** 2  # s / l = r - (r² - 1)^(1/2)
        linear = np.maximum(self.linear_ratios, 1.0)
        weights = np.concatenate([linear, ratios])
        missed = float(np.average(np.concatenate([1 / linear**2, lost]), weights=weights))
        # At least 0.1, as the target may depend on directions that were not found.
        return max(missed, 0.1)


@dataclass(frozen=True)
class FilterSettings:
    """Settings of a filter."""

    n_directions: (
        int | Literal["auto"]
    )  # "auto": the number of directions whose strength exceeds that with permuted labels
    first_moment: bool = False  # True to keep label-weighted means as columns
    multiclass: MultiClass = "sum-of-squares"
    solver: FilterSolver = "auto"
    max_directions: int = 640  # largest number of directions that "auto" keeps
    centred: bool = False  # True to subtract the mean from features
    residual: bool = False  # True to subtract the first moments' prediction from labels


@dataclass(frozen=True)
class FirstMoments:
    """First moments (label-weighted means of the features), used as directions."""

    directions: np.ndarray  # orthonormal columns, shape (P, m), the longest first
    strengths: np.ndarray  # singular values of the means, shape (m,)
    ratios: (
        np.ndarray
    )  # singular values relative to random labels, shape (m,); empty without a test
    significant: int  # number of singular values above those in all draws of random labels
    by_signal: (
        np.ndarray
    )  # length of each signal's mean relative to random labels, shape (S,) or (0,)


def first_moments(
    means: np.ndarray, settings: FilterSettings, drawn: Callable[[], np.ndarray], *, few: bool
) -> FirstMoments:
    """Directions of first moments (P, S): all of them, or those longer than with random labels."""
    # ``drawn`` returns the moments of random labels, shape (B, P, S); ``few`` means few draws.
    none = np.empty(0)
    if not settings.first_moment:
        return FirstMoments(np.empty((len(means), 0)), none, none, 0, none)
    U, sizes, _ = np.linalg.svd(means, full_matrices=False)
    least = max(1e-7 * sizes.max(initial=0.0), 1e-7 if means.shape[1] == 1 else 0.0)
    number = int(np.count_nonzero(sizes > least))
    found, significant, by_signal = none, 0, none
    if settings.n_directions == "auto":
        found, significant, by_signal = linear_ratios(means, drawn())
        if (
            few
        ):  # exceeding only a few draws is weak evidence, so the ratio must also be large enough
            found = np.asarray(found[found > FIRST_RATIO])
            significant = len(found)
        number = len(found)
    directions = with_fixed_signs(U[:, :number])
    return FirstMoments(directions, sizes[:number], found, significant, by_signal)


def fit_filter(
    signals: SignalOperators,
    settings: FilterSettings,
    *,
    n_samples: int,
    label_power: float,
    nulls: Callable[[], Sequence[SignalOperators]],
    rng: np.random.Generator,
    permuted: Permutations | None = None,
    means: FirstMoments | None = None,
) -> tuple[np.ndarray, FilterReport]:
    """Eigenvectors (P, k) of largest modulus of the label-weighted second moment, and a report."""
    if settings.multiclass not in ("sum-of-squares", "alternating"):
        raise InvalidParameter(
            unknown_choice("multiclass", settings.multiclass, ["sum-of-squares", "alternating"])
        )
    if means is None:
        means = _means_of(signals, settings, nulls, permuted)
    linear = means.directions
    room = signals.n_features - linear.shape[1]
    ranking = _Ranking(signals, settings, linear, rng)
    if settings.n_directions == "auto":
        most = max(1, min(room, settings.max_directions, n_samples // 2))
        tested: dict[str, Any] = _tested(signals, nulls, permuted, linear, most, ranking.seed, rng)
        pairs = ranking.pairs(max(1, min(tested["n_above"], room)))
    else:
        # If the first moment is zero, keep one more eigenvector instead.
        spare = int(settings.first_moment and not linear.shape[1])
        _warn_of_rank(settings.n_directions, signals.n_features)
        pairs = ranking.pairs(min(settings.n_directions + spare, room))
        tested = {"n_above": len(pairs.values)}
    strengths = ranking.strengths(pairs.values)
    V = np.hstack([linear, pairs.vectors])
    # s_j = v_j^T Sigma v_j; tr Sigma_res is the trace minus the variances of stronger directions.
    variances = signals.variances(V)
    left = signals.total_variance() - np.concatenate([[0.0], np.cumsum(variances)[:-1]])
    n_linear = linear.shape[1]
    kept, left = variances[n_linear:], np.maximum(left[n_linear:], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        dimensions = np.where(kept > 0, left / kept, np.inf)
        # n_j = E[y²] s_j tr Sigma_res / lambda_j²   (lofi 22, own noise alone)
        emergence = np.where(strengths != 0, label_power * kept * left / strengths**2, np.inf)
    largest = float(np.max(np.abs(pairs.values), initial=0.0)) or 1.0
    return V, FilterReport(
        eigenvalues=strengths,
        variances=kept,
        residual_dimensions=dimensions,
        emergence_samples=emergence,
        n_linear=n_linear,
        n_samples=n_samples,
        solver=ranking.used,
        largest_residual=float(np.max(pairs.residuals, initial=0.0)) / largest,
        linear_strengths=means.strengths,
        linear_ratios=means.ratios,
        mean_ratios=means.by_signal,
        n_linear_significant=means.significant,
        **tested,
    )


def _means_of(
    signals: SignalOperators,
    settings: FilterSettings,
    nulls: Callable[[], Sequence[SignalOperators]],
    permuted: Permutations | None,
) -> FirstMoments:
    """First moments of the features, compared with those of random labels."""

    def drawn() -> np.ndarray:
        # A stream has no permutations; compare with its few draws of random labels.
        if permuted is None:
            return np.stack([null.first_moments() for null in nulls()])
        return permuted.first_moments(range(DRAWS))

    return first_moments(signals.first_moments(), settings, drawn, few=permuted is None)


def _tested(
    signals: SignalOperators,
    nulls: Callable[[], Sequence[SignalOperators]],
    permuted: Permutations | None,
    linear: np.ndarray,
    most: int,
    seed: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Count the directions whose strength exceeds their null; return fields of a report."""
    # Streams have no permutations, so the ratio alone decides.
    passed = draws_exceeded(signals, permuted, linear, seed) if permuted else 0
    first_ratio = 1.0 if passed >= KEPT_DRAWS else FIRST_RATIO
    comparison = significant_directions(signals, nulls(), linear, most, rng, first_ratio)
    above = max(comparison.number, int(passed >= KEPT_DRAWS))
    return {
        "null_counts": comparison.null_counts,
        "null_ratios": comparison.null_ratios,
        "n_significant": above if passed == DRAWS or permuted is None else 0,
        "n_above": above,
        "first_ratio": first_ratio,
    }


def _warn_of_rank(asked: int, rank: int) -> None:
    if asked > rank:
        warnings.warn(
            f"reduce is {asked} and the features have rank {rank}; {rank} directions are kept.",
            UserWarning,
            stacklevel=2,
        )


class _Ranking:
    """Operator whose eigenvectors are ranked, restricted to the complement of the first moments."""

    def __init__(
        self,
        signals: SignalOperators,
        settings: FilterSettings,
        linear: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self.signals = signals
        self.linear = linear
        self.settings = settings
        self.seed = int(rng.integers(2**63))
        self.squared = signals.n_signals > 1 and settings.multiclass == "sum-of-squares"
        self.mixture: np.ndarray | None = None
        self.used: str = settings.solver
        if signals.n_signals > 1 and not self.squared:
            self.mixture = self._alternate()

    def product(self, Q: np.ndarray) -> np.ndarray:
        images = self.signals.products(Q)
        if self.squared:
            return np.asarray(
                self.signals.products(images)[0]
            )  # S Q = sum_c C_c (C_c Q)   (lofi 4)
        if self.mixture is not None:
            return np.asarray(np.einsum("s,spk->pk", self.mixture, images))
        return np.asarray(images[0])

    def _mixed(self, a: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda Q: np.asarray(np.einsum("s,spk->pk", a, self.signals.products(Q)))

    def strengths(self, values: np.ndarray) -> np.ndarray:
        """Eigenvalues, or for the sum of squares their roots."""
        return np.sqrt(np.maximum(values, 0.0)) if self.squared else values

    def pairs(self, n_vectors: int) -> ModulusPairs:
        size = self.signals.n_features
        product = outside(self.product, self.linear)
        solver = self.settings.solver
        if solver == "auto":
            # Up to about 400 features the explicit matrix is faster.
            solver = "dense" if size <= 400 or 4 * n_vectors >= size else "krylov"
        self.used = solver
        if solver == "krylov":
            try:
                return block_krylov(product, size, n_vectors, rng=self.seed)
            except NotConverged:
                if self.settings.solver != "auto":
                    raise
                self.used = "dense"
        if self.used == "lanczos":
            return _lanczos(product, size, n_vectors, self.seed)
        matrix = product(np.eye(size))
        return dense_by_modulus((matrix + matrix.T) / 2, min(size, n_vectors))

    def _alternate(self) -> np.ndarray:
        """Direction a in label space that maximises the largest eigenvalue of sum_c a_c C_c."""
        _, _, right = np.linalg.svd(self.signals.first_moments(), full_matrices=False)
        a = right[0]
        size, last, calm = self.signals.n_features, 0.0, 0
        for _ in range(20):
            top = block_krylov(self._mixed(a), size, 1, passes=6, tolerance=np.inf, rng=self.seed)
            value, v = float(abs(top.values[0])), top.vectors
            # For fixed v the best direction is a_c ~ v^T C_c v.
            r = np.einsum("pk,spk->s", v, self.signals.products(v))
            norm = float(np.linalg.norm(r))
            if norm == 0:
                break
            a = r / norm
            calm = calm + 1 if abs(value - last) < 1e-4 * max(value, 1e-300) else 0
            last = value
            if calm >= 3:
                break
        return np.asarray(a)


def _lanczos(
    product: Callable[[np.ndarray], np.ndarray], size: int, n_vectors: int, seed: int
) -> ModulusPairs:
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    operator = LinearOperator(
        (size, size), matvec=lambda q: product(q.reshape(-1, 1))[:, 0], dtype=np.float64
    )
    start = np.random.default_rng(seed).standard_normal(size)
    try:
        values, vectors = eigsh(operator, k=min(n_vectors, size - 1), which="LM", v0=start)
    except ArpackNoConvergence as error:
        raise NotConverged(
            f"Lanczos found {len(error.eigenvalues)} of {n_vectors} eigenpairs. Lower reduce, or set "
            "solver='dense'.",
            {"values": error.eigenvalues},
        ) from error
    order = np.lexsort((-values, -np.abs(values)))
    values, vectors = values[order], vectors[:, order]
    residuals = np.linalg.norm(product(vectors) - vectors * values, axis=0)
    return ModulusPairs(values, with_fixed_signs(vectors), residuals, 0)
