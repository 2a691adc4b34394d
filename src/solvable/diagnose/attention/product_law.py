"""Fit of the singular values of query^T key: learned rank, noise, strengths."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvable.arrays import random_stream
from solvable.diagnose.attention.factors import (
    Factors,
    Product,
    product_of,
    symmetry_of,
    used,
    values_of_grams,
)
from solvable.diagnose.attention.random_signs import SignedHead
from solvable.diagnose.bulk_fit import BulkFit, fit_bulk, fit_symmetric
from solvable.diagnose.diagnosis import (
    LOW_RANK,
    NO_LAW,
    RANDOM,
    REFUTED,
    SPIKES,
    SPREAD,
    THRESHOLDED,
    Estimate,
    Feature,
    HeadDiagnosis,
)
from solvable.diagnose.noise import NoiseLaw, RectangularNoise, SymmetricNoise
from solvable.diagnose.phases import features_of
from solvable.errors import InvalidData

MINIMUM_WIDTH = 8  # smallest number of head dimensions for a fit
LEAST = 6  # smallest number of positive values for a fit of thresholded noise; zeros are data too


def diagnose_head(
    head: HeadDiagnosis, query: np.ndarray, key: np.ndarray, *, precision: float, seed: int = 0
) -> HeadDiagnosis:
    """Complete a head's row from the query (h, d) and the key (h, D)."""
    fault = _fault(query, key)
    if fault:
        return replace(head, reason=fault)
    units = [float(np.abs(factor).max()) for factor in (query, key)]
    unit = units[0] * units[1]
    query, key = (
        np.asarray(one, dtype=float) / size for one, size in zip((query, key), units, strict=True)
    )
    factors, product = product_of(query, key, precision)
    if not product.rank:
        return replace(
            head, reason="query and key have no direction in common: the product is zero."
        )
    row = replace(
        head,
        rank=product.rank,
        symmetry=symmetry_of(query, key) if factors.sides[0] == factors.sides[1] else None,
        tied=factors.tied,
        values=product.values[: product.rank] * unit,
    )
    if np.ptp(product.values) <= 1e-3 * product.values[0]:
        return replace(row, reason="all singular values are equal, as for orthogonal factors.")
    note = ""
    if product.rank < factors.width:
        try:
            fit = thresholded(product, factors, seed)
        except InvalidData as error:
            return replace(row, phase=LOW_RANK, reason=_few(row, factors, error))
        if _stands(fit, row.rank):
            return _of_threshold(row, fit, factors, unit)
        note = f"the law of a threshold is refuted (p = {fit.p_value:.3f})."
    return _of_product(row, factors, product, unit, note, seed)


def _few(row: HeadDiagnosis, factors: Factors, error: InvalidData) -> str:
    return (
        f"{row.rank} of {factors.width} values are not zero, too few to separate noise from learned "
        f"directions: {error} If a penalty has removed all noise, all of these values were learned."
    )


def _fault(query: np.ndarray, key: np.ndarray) -> str:
    width = query.shape[0]
    if width < MINIMUM_WIDTH:
        return f"heads of {width} dimensions; at least {MINIMUM_WIDTH} are needed."
    if min(query.shape[1], key.shape[1]) <= width:
        sides = f"{query.shape[1]} x {key.shape[1]}"
        return (
            f"a head of {width} dimensions is as wide as its product, {sides}: nothing to compare."
        )
    for name, factor in (("query", query), ("key", key)):
        if not np.isfinite(factor).all():
            count = int((~np.isfinite(factor)).sum())
            return f"{count} of {factor.size} entries of the {name} are not finite."
        if not factor.any():
            return f"all entries of the {name} are zero."
    return ""


def thresholded(product: Product, factors: Factors, seed: int) -> BulkFit:
    """Fit (S_0 + delta Z - b)_+: signal plus noise, lowered by b and cut at zero   (spectra 13)."""
    # arXiv:2509.24914: W W^T / sqrt(pd) = eta ReLU(S_0 + delta Z - eps), Z of the GOE, if the width
    # is above the learned rank. Here eta is part of the unit. For untied factors the penalty is the
    # nuclear norm of their product: it lowers singular values, and Z is not symmetric
    # (spectra 13).
    values = np.zeros(min(factors.sides))
    values[: product.values.size] = product.values

    def fit(outliers: int) -> BulkFit:
        options = {"least": LEAST, "outliers": outliers, "seed": seed}
        if factors.tied:
            return fit_symmetric(values, semidefinite=True, **options)
        return fit_bulk(values, factors.sides, **options)

    best = fit(0)
    if _stands(best, product.rank):
        return best
    # If learned directions are a third of all values or more, all values together resemble a bulk,
    # though a poor one: then some of them are removed at the start.
    for outliers in range(-(-product.rank // 3), product.rank - LEAST + 1):
        try:
            found = fit(outliers)
        except InvalidData:
            continue
        settled = int((values > found.cut).sum()) == found.n_outliers
        if settled and found.p_value > max(0.2, best.p_value):
            best = found
    return best


def _stands(fit: BulkFit, rank: int) -> bool:
    """Return True if noise cut by a threshold is not refuted."""
    # A test with few values of noise has little power, so its p-value must be larger.
    return fit.p_value >= (REFUTED if rank - fit.n_outliers >= 2 * LEAST else 0.1)


def _of_threshold(row: HeadDiagnosis, fit: BulkFit, factors: Factors, unit: float) -> HeadDiagnosis:
    p, q = fit.shape
    law: NoiseLaw = SymmetricNoise() if factors.tied else RectangularNoise(p / q)
    places = 1 - (np.arange(p) + 0.5) / p
    expected = fit.noise * law.quantile(places) - fit.shrinkage
    return replace(
        row,
        phase=THRESHOLDED,
        reason=(
            f"{factors.width - row.rank} of {factors.width} dimensions are unused, and the "
            f"{row.rank - fit.n_outliers} values that are not learned follow noise cut by a "
            f"threshold (p = {fit.p_value:.2f})."
        ),
        learned=fit.n_outliers,
        noise=Estimate.of(fit.noise, fit.noise_error, unit, least=0.0),
        threshold=Estimate.of(fit.shrinkage, fit.shrinkage_error, unit, least=0.0),
        features=features_of(fit, unit),
        p_value=fit.p_value,
        expected=expected[expected > 0] * unit,
    )


def _of_product(
    row: HeadDiagnosis, factors: Factors, product: Product, unit: float, note: str, seed: int
) -> HeadDiagnosis:
    """Complete the row by the other model: independent factors plus learned directions."""
    factors = used(factors, product.rank)
    head = SignedHead(factors, product, seed)
    count, stopped = head.beyond_signs()
    if row.rank - count < LEAST:
        reason = f"{count} of {row.rank} values are larger than those under random signs, "
        reason += f"and too few other values are left to fit a law. {note}"
        return replace(row, phase=NO_LAW, reason=reason.strip(), learned=count)
    fit = ProductFit.of(head, count)
    phase = (SPIKES if count else RANDOM) if fit.stands else NO_LAW if count else SPREAD
    if count:
        verb = "is" if count == 1 else "are"
        reason = f"{count} of {row.rank} values {verb} larger than those under random signs, and "
    else:
        reason = f"no value is larger than those under {stopped}, "
        reason += "and " if fit.stands else "but "
    reason += f"{fit.words}. {note[:1].upper()}{note[1:]}"
    # Entries of the rest have variance |rest|² / (d D).
    noise = fit.norm / min(factors.sides) ** 0.5
    return replace(
        row,
        phase=phase,
        reason=reason.strip(),
        learned=count,
        noise=Estimate.of(noise, noise * fit.norm_error, unit, least=0.0) if fit.stands else None,
        features=strengths(factors, product, count, unit, seed) if fit.stands else (),
        p_value=fit.p_value,
        rest_symmetry=None if factors.tied else fit.symmetry,
        expected=fit.expected * unit,
    )


@dataclass(frozen=True, eq=False)
class ProductFit:
    """Comparison of the values that are not learned with the same factors under random signs."""

    expected: np.ndarray  # means of the ordered values under random signs, scaled to the file's sum
    p_value: float  # p-value of the spectrum's shape
    symmetry: float  # deviation of the symmetry, in standard deviations under random signs
    norm: float  # Frobenius norm of the rest, the product without learned directions
    norm_error: float  # relative standard deviation of the rest's norm under random signs

    @staticmethod
    def of(head: SignedHead, count: int) -> ProductFit:
        """Compare the rest with 199 draws of random signs; only the sum of the values is fitted."""
        rest, bulk = head.without(count), head.product.values[count : head.product.rank]
        draws = head.signed(count, 199)
        drawn = draws.values[:, : bulk.size]
        norms = (drawn**2).sum(axis=1) ** 0.5
        sums = drawn.sum(axis=1, keepdims=True)
        # Mean difference of ordered values in units of their fluctuation. The values of the file
        # count as one of the draws, so that for noise every rank among the draws is equally likely.
        everything = np.vstack([drawn / sums, bulk / bulk.sum()])
        centre, spread = everything.mean(axis=0), everything.std(axis=0)
        gaps = (np.abs(everything - centre) / spread).mean(axis=1)
        symmetry = 0.0
        if not rest.tied and rest.sides[0] == rest.sides[1]:
            seen = symmetry_of(rest.query, rest.key)
            symmetry = float((seen - draws.symmetry.mean()) / draws.symmetry.std(ddof=1))
        return ProductFit(
            everything[:-1].mean(axis=0) * bulk.sum(),
            float((gaps >= gaps[-1]).mean()),
            symmetry,
            float((bulk**2).sum() ** 0.5),
            float(norms.std(ddof=1) / norms.mean()),
        )

    @property
    def stands(self) -> bool:
        """True if independent factors explain the values that are not learned."""
        # The shape is tested at the 1 % level, the symmetry at four standard deviations.
        return self.p_value > 0.01 and abs(self.symmetry) < 4

    @property
    def words(self) -> str:
        """Return the result of the comparison as the end of a sentence."""
        if self.p_value <= 0.01:
            return f"no product of independent factors explains the rest (p = {self.p_value:.3f})"
        if not self.stands:
            return (
                "query and key are not independent: the symmetry of the rest is off by "
                f"{self.symmetry:+.0f} standard deviations"
            )
        return f"a product of independent factors explains the rest (p = {self.p_value:.2f})"


def strengths(
    factors: Factors, product: Product, count: int, unit: float, seed: int
) -> tuple[Feature, ...]:
    """Estimate the strengths behind the largest values; the rest is noise with random directions."""
    # Low-rank signals added to noise with singular values nu   (spectra 14; arXiv:1103.2221):
    # phi(x) = mean x / (x² - nu²) on each side, s^(-2) = phi_d phi_D.
    rest = product.values[count : product.rank]
    found = [_behind(x, rest, factors) for x in product.values[:count]]
    errors = _spread(factors, product, count, np.array([s for s, *_ in found]), seed)
    return tuple(
        Feature(float(x) * unit, Estimate.of(s, error, unit, least=0.0), short, long)
        for x, (s, short, long), error in zip(product.values, found, errors, strict=False)
    )


def _behind(x: float, rest: np.ndarray, factors: Factors) -> tuple[float, float, float]:
    """Strength behind a value, and its squared overlaps on the shorter and the longer side."""
    low, high = sorted(factors.sides)
    if factors.tied:
        # Symmetric noise: 1/s = G(x) = mean 1 / (x - nu), overlap -1 / (s² G')   (spectra 14).
        first = ((low - rest.size) / x + (1 / (x - rest)).sum()) / low
        slope = ((low - rest.size) / x**2 + (1 / (x - rest) ** 2).sum()) / low
        return 1 / first, first**2 / slope, first**2 / slope
    gap = x**2 - rest**2
    value = (x / gap).sum() + (np.array([low, high]) - rest.size) / x
    slope = ((x**2 + rest**2) / gap**2).sum() + (np.array([low, high]) - rest.size) / x**2
    phi, change = value / (low, high), slope / (low, high)
    square = 1 / float(phi.prod())
    total = float(change[0] * phi[1] + phi[0] * change[1])
    overlaps = 2 * phi / (square * total)
    return square**0.5, float(overlaps[0]), float(overlaps[1])


def _spread(
    factors: Factors, product: Product, count: int, strength: np.ndarray, seed: int
) -> np.ndarray:
    """Standard errors of strengths, from simulated heads with these strengths."""
    if not count:
        return np.zeros(0)
    rng = random_stream(seed, "head strengths")
    draws, (d, other) = 24, factors.sides
    width = product.rank - count
    bulk = product.values[count : product.rank]
    scale = float((bulk**2).sum() / (width * d * other)) ** 0.25
    if factors.tied:
        scale = float((bulk.sum()) / (width * d)) ** 0.5
    found = np.empty((draws, count))
    for k in range(draws):
        query = gram_of_head(scale, width, strength, d, rng)
        key = query if factors.tied else gram_of_head(scale, width, strength, other, rng)
        values = values_of_grams(query, key)
        found[k] = [_behind(x, values[count:], factors)[0] for x in values[:count]]
    return np.asarray(((found - strength) ** 2).mean(axis=0) ** 0.5)


def gram_of_head(
    scale: float, width: int, strength: np.ndarray, side: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw F F^T for a factor F: rows of noise, above rows sqrt(s) e^T along orthonormal directions e."""
    # The noise Z is rotation invariant, so the directions may be the first axes: Z = (N, N'), and
    # N' N'^T = L L^T with Bartlett's L: chi of side - count - i on the diagonal, normals below it.
    count = strength.size
    near = scale * rng.standard_normal((width, count))
    lower = np.tril(rng.standard_normal((width, width)), -1)
    lower[np.diag_indices(width)] = np.sqrt(rng.chisquare(side - count - np.arange(width)))
    mixed = near * np.sqrt(strength)
    return np.block(
        [[near @ near.T + scale**2 * lower @ lower.T, mixed], [mixed.T, np.diag(strength)]]
    )
