"""Spikes in a label-weighted random matrix on a structured background, at finite size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData
from solvable.spectra._edge_ensemble import (
    EdgeSpikes,
    Ranking,
    nearest,
    span_overlaps,
)
from solvable.spectra._spectrum_end import Side, Spikes


@dataclass(frozen=True)
class WeightedSample:
    """Distribution of a sample's weight, and the sample's couplings to the spikes."""

    weights: np.ndarray  # weights w, ascending, shape (m,)
    probabilities: np.ndarray  # probability of each weight
    couplings: np.ndarray  # couplings u_i = E[T² |P K A_i|² / D | w], shape (m, p)
    # u_i / w² of one sample per weight; by default the mean
    single: np.ndarray | None = None
    gaussian: bool = False  # True if components along spikes are Gaussian over all weights

    @property
    def powers(self) -> np.ndarray:
        r"""Squared components :math:`h_i^2=u_i/w^2` of a sample along the spikes."""
        return (
            squared_components(self.weights, self.couplings) if self.single is None else self.single
        )

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation of h_i² given the weight, divided by its mean and by 2^(1/2)."""
        # If the fourth moment of Gaussian components, 3, is kappa E[E[h² | w]²] with one kappa for all
        # weights, h² = E[h² | w] (1 + c (g² - 1)) with c² = (kappa - 1) / 2 and a normal g.
        if not self.gaussian:
            return np.zeros(self.couplings.shape[1])
        kappa = 3 / (self.probabilities @ self.powers**2)
        return np.sqrt((np.clip(kappa, 1, 3) - 1) / 2)

    def clipped(self, n_samples: float) -> WeightedSample:
        """Distribution clipped at the weight that fewer than one of n samples exceeds, for each sign."""
        weights = self.weights.copy()
        for sign in (1, -1):
            size = sign * self.weights
            tail = np.argsort(-size)[: np.count_nonzero(size > 0)]
            if tail.size:
                within = np.cumsum(self.probabilities[tail]) >= 1 / n_samples
                cap = size[tail[np.argmax(within) if within.any() else -1]]
                weights = sign * np.minimum(sign * weights, cap)
        moved = np.flatnonzero(weights != self.weights)
        if not moved.size:
            return self
        # u scales with the square of the weight, so u is lowered together with a clipped weight.
        couplings = self.couplings.copy()
        couplings[moved] *= ((weights[moved] / self.weights[moved]) ** 2)[:, None]
        return WeightedSample(weights, self.probabilities, couplings, gaussian=self.gaussian)


def compress_sample(
    weights: np.ndarray, couplings: np.ndarray, *, atoms: int = 4_000
) -> WeightedSample:
    """Gather a large sample of weights into a few thousand atoms, with exact tails."""
    if weights.ndim != 1 or couplings.shape[:1] != weights.shape or couplings.ndim != 2:
        raise InvalidData(
            f"weights have shape {weights.shape} and couplings {couplings.shape}; allowed: (m,) "
            "and (m, p)."
        )
    if weights.size == 0 or not (np.isfinite(weights).all() and np.isfinite(couplings).all()):
        raise InvalidData("weights and couplings must be finite and at least one draw.")
    order = np.argsort(weights)
    count, tail, groups = weights.size, atoms // 4, atoms // 2
    if count > 2 * tail + groups:
        middle = np.linspace(tail, count - tail, groups, endpoint=False)
        starts = np.concatenate(
            [np.arange(tail), middle.astype(int), np.arange(count - tail, count)]
        )
    else:
        starts = np.arange(count)
    sizes = np.diff(np.append(starts, count))
    group = np.empty(count, dtype=np.intp)
    group[order] = np.repeat(np.arange(sizes.size), sizes)
    # Sums by group without a sorted copy of the couplings
    means = np.empty((sizes.size, couplings.shape[1]))
    for i, column in enumerate(couplings.T):
        means[:, i] = np.bincount(group, column) / sizes
    middle = order[(starts + np.append(starts[1:], count) - 1) // 2]
    single = squared_components(weights[middle], couplings[middle])
    return WeightedSample(np.bincount(group, weights) / sizes, sizes / count, means, single)


def squared_components(weights: np.ndarray, couplings: np.ndarray) -> np.ndarray:
    """Squared components h_i² = u_i / w² along the spikes; 1 for a sample of zero weight."""
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = couplings / (weights**2)[:, None]
    return np.asarray(np.where(np.isfinite(powers), powers, 1.0))


@dataclass(frozen=True)
class Background:
    """Background: the population matrix without the spikes."""

    atoms: np.ndarray  # eigenvalues on the complement of the spikes, equally likely, shape (k,)
    variance: float  # variance of an additional semicircle, free from the atoms
    # squared norm that the semicircle moves from each spike to the complement
    couplings: np.ndarray
    # squared weight of each spike on each atom (rows sum to 1); if None, each spike is an eigenvector
    # of the background
    profiles: np.ndarray | None = None
    # squared entries between each spike and the atoms' eigenvectors, which then belong to the
    # complement
    links: np.ndarray | None = None

    @classmethod
    def empty(cls, features: int) -> Background:
        """Return an empty background: the spikes are exact eigenvectors of the population matrix."""
        return cls(np.zeros(1), 0.0, np.zeros(features))


@dataclass(frozen=True)
class SpikePrediction:
    """Eigenvalues of the spikes of a random matrix, and overlaps of the eigenvectors."""

    bulk_edges: tuple[float, float]  # lower and upper edge
    eigenvalues: np.ndarray  # of each spike, shape (p,); near the edge below the threshold
    squared_overlap: np.ndarray  # squared overlap, rounded at this number of features
    sharp_squared_overlap: np.ndarray  # limit of many features; 0 below the threshold
    excess: np.ndarray  # |R_i| - |L| at the edge: distance of the spike beyond its threshold

    @property
    def recovered(self) -> np.ndarray:
        """Mask of the spikes that are outliers in the limit of many features."""
        return self.sharp_squared_overlap > 0


def predict_spikes(
    *,
    sample: WeightedSample,
    heights: np.ndarray,
    n_samples: float,
    n_features: int,
    background: Background | None = None,
    n_directions: int | None = None,
    room: float = 0.0,
    ranking: Ranking = "centre",
    both_ends: bool = False,
) -> SpikePrediction:
    r"""Predict the outliers of :math:`B+\sum_i\theta_iA_iA_i^\top+\frac1n\sum_\mu(T_\mu K_\mu-E[TK])`.

    On the complement of the spikes :math:`T_\mu K_\mu` acts as
    :math:`w_\mu g_\mu g_\mu^\top` with Gaussian g. With :math:`\delta=n/D`,
    :math:`\zeta` outside the spectrum of B, :math:`G(\zeta)=E_B[1/(\zeta-x)]` and
    :math:`a=G/\delta`,

    .. math::
        z=L(\zeta)=\zeta+E\Big[\frac{w}{1-wa}\Big]-E[w]+b^2G,\qquad
        R_i(\zeta)=\theta_i+E\Big[\frac{u_ia}{1-wa}\Big]+b_i^2G
        +\zeta-\langle x\rangle_i-\frac1{\langle1/(\zeta-x)\rangle_i},

    where :math:`\langle\cdot\rangle_i` is the mean over the profile of spike i on the atoms of B
    (the last three terms vanish for an eigenvector). The edge is the minimum of L. Spike i is an
    outlier where :math:`L=R_i` has a root beyond the edge; there :math:`c_i^2=L'/(L'-R_i')`. The
    transition is rounded on the scale :math:`D^{-1/3}` of the edge: :math:`L'/(-R_i')`, or below the
    threshold the linear continuation of :math:`\zeta_i-\zeta_\star`, goes through the universal profile
    :func:`~solvable.spectra.critical_profile`, so that ``squared_overlap`` is the mean over samples.

    Parameters
    ----------
    sample : WeightedSample
        Distribution of the weights and couplings. Weights that fewer than one of n samples exceeds
        are clipped, because one such sample causes a separate eigenvalue, not a bulk.
    heights : ndarray of shape (p,)
        :math:`\theta_i=\langle A_i,E[C]A_i\rangle` of either sign, not zero.
    n_samples : float
        :math:`n`, above 0.
    n_features : int
        :math:`D`, above the number of spikes.
    background : Background, optional
        Background B; by default none.
    n_directions : int, optional
        Number of eigenvectors whose span defines the overlaps: first the eigenvectors farthest beyond
        the edges, then those farthest from the centre. By default the overlap of each spike is with
        the extreme eigenvector, as for a single spike.
    room : float
        Error of the edges known to the learner, as a share of the width of the bulk: an eigenvalue
        within this distance beyond an edge is ranked by its distance from the centre.
    ranking : {"centre", "permuted", "modulus"}
        Rank of eigenvectors inside the bulk: by distance from the mean of the background; or of all
        eigenvectors by distance from the nearer edge of one matrix with permuted labels, or by modulus.
    both_ends : bool
        If True, overlaps with a span include the eigenvectors at the end opposite to each spike. There
        one eigenvector of the bulk has the mean squared component :math:`-R_i'/(-DG'(L-R_i)^2)`.

    Returns
    -------
    SpikePrediction
        Edges, eigenvalues and overlaps.

    Raises
    ------
    InvalidParameter
        If ``n_samples`` or ``n_features`` is not positive.
    NotConverged
        If the edge could not be bracketed.

    Notes
    -----
    Time: a few milliseconds. Without background, for bounded labels and :math:`K=FF^\top-I` it is the
    resolvent formula of sequential feature recovery; for :math:`n\gg D` the closed form
    :math:`c^2=(\nu-\tau_2)_+/((\nu-\tau_2)_++\tau_{2h})`. Source: derivations/spectra (20);
    backed by ``tests/spectra/test_structured_spikes.py`` (simulated matrices, closed forms).

    Examples
    --------
    >>> sample = WeightedSample(np.array([-1.0, 1.0]), np.full(2, 0.5), np.ones((2, 1)))
    >>> found = predict_spikes(
    ...     sample=sample, heights=np.array([0.2]), n_samples=1e7, n_features=10_000
    ... )
    >>> found.sharp_squared_overlap.round(3)
    array([0.975])
    """
    check_positive(n_samples=n_samples, n_features=n_features)
    sides = both_sides(sample, n_samples, n_features, background, heights)
    own = [np.flatnonzero((heights >= 0) == (sign > 0)) for sign, _, _ in sides]
    places, overlaps, sharp, excess = np.zeros((4, heights.size))
    centre = 0.0 if background is None else float(background.atoms.mean())
    # Of a hundred largest eigenvalues of noise 99 are less than 2.02 l beyond the edge
    # (Tracy-Widom).
    margins = [2.02 * side.scale for _, side, _ in sides]
    known = room * sum(side.edge + at for (_, side, _), at in zip(sides, margins, strict=True))
    ends = []
    for (sign, side, every), chosen, at in zip(sides, own, margins, strict=True):
        spikes = every.some(chosen)
        found = side.spikes(spikes)
        places[chosen] = sign * side.places(found)
        sharp[chosen], excess[chosen] = found.sharp, found.excess
        near = nearest(found.excess)
        if n_directions is None or near.size < chosen.size:
            overlaps[chosen] = side.rounded(found)
        if n_directions is not None:
            scatter = side.scatter(spikes.couplings[:, near], n_samples)
            ends.append(
                EdgeSpikes(
                    found.near,
                    found.excess,
                    near,
                    scatter,
                    side.scale,
                    side.edge - sign * centre,
                    at + known,
                    _opposite(sides[sign == 1], chosen) if both_ends else 0.0,
                    ranking,
                )
            )
    edges = (-sides[1][1].edge, sides[0][1].edge)
    if n_directions is not None:
        chance = min(n_directions / n_features, 1.0)
        shared = span_overlaps(*ends, n_directions=n_directions, n_features=n_features)
        for chosen, mean in zip(own, shared, strict=True):
            alone = overlaps[chosen] + (1 - overlaps[chosen]) * chance
            overlaps[chosen] = np.where(np.isnan(mean), alone, mean)
    return SpikePrediction(edges, places, overlaps, sharp, excess)


def _opposite(end: tuple[int, Side, Spikes], chosen: np.ndarray) -> np.ndarray:
    """Expected squared component of each spike in one bulk eigenvector at the end opposite to it."""
    _, side, every = end
    mirrored = every.some(chosen)
    mirrored = replace(mirrored, heights=-mirrored.heights)
    place, _, value, rate = side.curves(np.array([side.critical]), mirrored)
    # -R' / (-D G' (L - R)²) at the edge, where L' = 0; it is 1/D for a direction of the noise, which
    # has L - R = zeta, G' = -1 / zeta² and R' = -1   (spectra 18).
    gap = place - value[0]
    return np.asarray(-rate[0] / (side.n_features * side.steepness * gap**2))


def spike_excess(
    *,
    sample: WeightedSample,
    heights: np.ndarray,
    n_samples: float,
    n_features: int,
    background: Background | None = None,
) -> np.ndarray:
    """Distance of each spike beyond its threshold, without the full prediction."""
    check_positive(n_samples=n_samples, n_features=n_features)
    excess = np.empty(heights.size)
    for sign, side, spikes in both_sides(sample, n_samples, n_features, background, heights):
        place, _, value, _ = side.curves(np.array([side.critical]), spikes)
        chosen = (heights >= 0) == (sign > 0)
        excess[chosen] = (value[0] - place)[chosen]
    return excess


def both_sides(
    sample: WeightedSample,
    n_samples: float,
    n_features: int,
    background: Background | None,
    heights: np.ndarray,
) -> list[tuple[int, Side, Spikes]]:
    """Upper end of the spectrum, and the mirrored lower end; each end has all spikes."""
    held = Background.empty(heights.size) if background is None else background
    clipped, law = sample.clipped(n_samples), (held.variance, n_samples, n_features)
    spikes = Spikes(np.abs(heights), clipped.couplings, held.couplings, held.profiles, held.links)
    return [
        (
            sign,
            Side(sign * clipped.weights, clipped.probabilities, sign * held.atoms, *law),
            spikes,
        )
        for sign in (1, -1)
    ]
