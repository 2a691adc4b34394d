r"""Which of six phases a spectrum is in: likelihood of the laws of each, on the same values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvable.diagnose.bulk_law import WholeBulk
from solvable.diagnose.smooth_law import SmoothLaw, fit_smooth

COLLAPSED = 0.9
"""Share of zeros from which the rank has collapsed: "almost all" in a number."""

MINIMUM_SMOOTH = 30
"""Positive values below which no smooth law is fitted."""

ALL_ROUNDED = 8
"""Outliers at most for which a phase of one touching signal is considered."""


@dataclass(frozen=True)
class PhaseLaw:
    r"""Most likely law of a phase.

    Parameters
    ----------
    phase : str
        One of the six.
    log_likelihood : float
        Of all values, in nats.
    n_parameters : int
        Fitted numbers.
    size : int
        Number of values.
    what : str
        The law in words.
    smooth : SmoothLaw or None
        The law itself where it has no bulk.
    decay : float
        :math:`\gamma` of the strengths, where they follow a power law; else 0.
    """

    phase: str
    log_likelihood: float
    n_parameters: int
    size: int
    what: str
    smooth: SmoothLaw | None = None
    decay: float = 0.0

    @property
    def score(self) -> float:
        """Log-likelihood less half the logarithm of the number of values per parameter."""
        return self.log_likelihood - 0.5 * self.n_parameters * float(np.log(self.size))


def phase_laws(
    values: np.ndarray, bulk: WholeBulk | None, n_outliers: int, *, believed: bool = False
) -> list[PhaseLaw]:
    r"""Best law of every phase, most likely first.

    All laws are densities of all p values. With f of the bulk and its rounded edge, K outliers and
    zeros as data:

    - random-like: :math:`\sum\log f`;
    - one signal per outlier: :math:`\sum_{i\le p-K}\log f+\sum_k\log g_k-\log\frac{p!}{(p-K)!}`,
      each signal one parameter; the strongest within its own width of the edge is bleeding-out,
      beyond it bulk+spikes;
    - signals of a power law: :math:`\sum\log((1-\pi)f+\pi h_\gamma)`, bulk+spikes if they are
      fewer than those from which the weakest merge (:meth:`WholeBulk.merging`), bulk-decay beyond;
    - no bulk: a smooth law, heavy-tailed with a power-law tail, bulk-decay without;
    - rank-collapse: any of them with nine zeros in ten.

    Each parameter costs :math:`\frac12\log p`.

    Parameters
    ----------
    values : ndarray of shape (p,)
        Ascending, not negative, zeros exact; or of both signs, ascending in distance from the
        centre of a bulk that says so.
    bulk : WholeBulk, optional
        Fitted; without it the laws without a bulk remain.
    n_outliers : int
        Values beyond the cut of the bulk.
    believed : bool
        Whether the bulk passes its goodness of fit and is most of the values: laws without a
        bulk are then left out. Values of a bulk repel, and lie closer to their law than independent
        ones by the root of their number; a sum of log-densities has none of that evidence, and the
        price of ten signals alone would decide.

    Returns
    -------
    list of PhaseLaw
        At most one per phase, by score; empty if nothing can be fitted.

    Notes
    -----
    Values of noise repel and fluctuate less than independent ones, so that the penalty is on the
    safe side. Source: derived from arXiv:2505.17958; backed by
    ``tests/diagnose/test_phase_likelihood.py`` (planted spectra of every phase).

    Examples
    --------
    >>> values = np.sort(np.random.default_rng(0).pareto(1.0, 300))
    >>> phase_laws(values, None, 0)[0].phase
    'heavy-tailed'
    """
    found: list[PhaseLaw] = []
    signed = bulk.signed if bulk is not None else bool((values < 0).any())
    zeros = 0 if signed else int((values == 0).sum())
    if bulk is not None:
        found += _bulk_phases(values, bulk, n_outliers)
    moduli = np.abs(values) if signed else values[zeros:]
    if not (believed and found):
        found += _smooth_phases(moduli[moduli > 0], zeros, signed)
    if bulk is not None and found:
        # A bulk without a shrinkage says nothing of zeros: an atom of its own.
        cost = _atom(zeros, values.size) if bulk.shift <= 0 and not signed else 0.0
        found = [
            one if one.smooth else replace(one, log_likelihood=one.log_likelihood + cost)
            for one in found
        ]
    found += _collapse(found, zeros, values.size)
    best: dict[str, PhaseLaw] = {}
    for one in sorted(found, key=lambda law: -law.score):
        best.setdefault(one.phase, one)
    return list(best.values())


def _bulk_phases(values: np.ndarray, bulk: WholeBulk, n_outliers: int) -> list[PhaseLaw]:
    p = values.size
    own = 1 + (bulk.shift != 0)
    density = bulk.log_density(values)
    found = [PhaseLaw("random-like", float(density.sum()), own, p, "noise")]
    for count in {n_outliers, 1} - {0}:
        found += _free_spikes(values, bulk, density, count, own)
    if n_outliers:
        found += _pooled_spikes(values, bulk, density, n_outliers, own)
    return found


def _free_spikes(
    values: np.ndarray, bulk: WholeBulk, density: np.ndarray, count: int, own: int
) -> list[PhaseLaw]:
    p = values.size
    tops = values[-count:]
    places = float(np.log(np.arange(p - count + 1, p + 1)).sum())
    total = float(density[:-count].sum()) + float(bulk.log_spikes(tops).sum()) - places
    # Where a signal just clear of the edge would be seen, and how far the strongest is from it.
    x = _place(bulk, bulk.separated)
    top = float(bulk.modulus(tops[-1:])[0])
    away = (top - x) / float(bulk.width(np.array([max(x, top)]))[0])
    outside, inside = 0.5 * min(away, 0.0) ** 2, 0.5 * max(away, 0.0) ** 2
    words = f"noise and {count} {'signal' if count == 1 else 'signals'}"
    return [
        PhaseLaw("bulk+spikes", total - outside, own + count, p, words),
        PhaseLaw("bleeding-out", total - inside, own + count, p, f"{words} at the edge"),
    ]


def _place(bulk: WholeBulk, ratio: float) -> float:
    """Where a signal of this many thresholds is seen."""
    low, high = bulk.law.edges[1], bulk.law.edges[1] + 4 * ratio * bulk.law.threshold
    for _ in range(60):
        middle = (low + high) / 2
        if float(bulk.law.strength(np.array([middle]))[0]) < ratio * bulk.law.threshold:
            low = middle
        else:
            high = middle
    return high * bulk.scale - bulk.shift


def _pooled_spikes(
    values: np.ndarray, bulk: WholeBulk, density: np.ndarray, n_outliers: int, own: int
) -> list[PhaseLaw]:
    """Strengths of a power law, with few signals and with so many that they merge."""
    from scipy.optimize import minimize, minimize_scalar

    p = values.size
    # Far below the cut the signals have no density: only the share of noise counts there.
    upper = max(0, p - 4 * n_outliers - 20)

    def loss(share: float, decay: float) -> float:
        if not (0 < share < 0.6 and 0.05 < decay < 20):
            return 1e12
        mixed = np.logaddexp(
            np.log1p(-share) + density[upper:],
            np.log(share) + bulk.log_power_law(values[upper:], decay),
        )
        return -float(mixed.sum() + upper * np.log1p(-share) + density[:upper].sum())

    tops = bulk.modulus(values[p - n_outliers :])
    strengths = bulk.law.strength((tops + bulk.shift) / bulk.scale)
    start = max(float(np.log(strengths / bulk.law.threshold).mean()), 0.1)
    free = minimize(
        lambda t: loss(float(np.exp(t[0])), float(np.exp(t[1]))),
        np.log([n_outliers / p, start]),
        method="Nelder-Mead",
        options={"xatol": 1e-3, "fatol": 1e-3, "maxiter": 200},
    )
    share, decay = np.exp(free.x)
    merging = share * p > bulk.merging(decay)
    edge = minimize_scalar(
        lambda t: loss(bulk.merging(float(np.exp(t))) / p, float(np.exp(t))),
        bounds=(np.log(0.06), np.log(15.0)),
        method="bounded",
        options={"xatol": 1e-3},
    )
    bound = min(-float(edge.fun), -float(free.fun))
    words = f"noise and signals of a power law, gamma = {decay:.2f}"
    both = [
        ("bulk-decay" if merging else "bulk+spikes", -float(free.fun), float(decay)),
        ("bulk+spikes" if merging else "bulk-decay", bound, float(np.exp(edge.x))),
    ]
    return [PhaseLaw(name, value, own + 2, p, words, decay=at) for name, value, at in both]


def _smooth_phases(positive: np.ndarray, zeros: int, signed: bool) -> list[PhaseLaw]:
    size = positive.size + zeros
    if positive.size < MINIMUM_SMOOTH or positive.min() == positive.max():
        return []
    # Either sign is as likely.
    atom = _atom(zeros, size) - signed * size * float(np.log(2))
    found = []
    for power_tail, shifted, phase, words in (
        (True, False, "heavy-tailed", "a power-law tail without a bulk"),
        (True, True, "heavy-tailed", "a power law lowered by a threshold"),
        (False, False, "bulk-decay", "a smooth law without a power-law tail"),
    ):
        law = fit_smooth(positive, power_tail=power_tail, shifted=shifted)
        count = law.n_parameters + (zeros > 0)
        found.append(PhaseLaw(phase, law.log_likelihood + atom, count, size, words, law))
    return found


def _atom(zeros: int, size: int, bound: tuple[float, float] = (0.0, 1.0)) -> float:
    """Largest logarithm of the probability of which values are zero, their share bounded."""
    if zeros in (0, size) and bound == (0.0, 1.0):
        return 0.0
    share = float(np.clip(zeros / size, max(bound[0], 1e-12), min(bound[1], 1 - 1e-12)))
    return float(zeros * np.log(share) + (size - zeros) * np.log1p(-share))


def _collapse(found: list[PhaseLaw], zeros: int, size: int) -> list[PhaseLaw]:
    """The best law with nine zeros in ten; the others keep what is left to them."""
    if zeros == 0:
        return []
    best = max(found, key=lambda law: law.score, default=None)
    if best is None and zeros < COLLAPSED * size:
        return []
    free = _atom(zeros, size)
    inside = _atom(zeros, size, (COLLAPSED, 1.0)) - free
    outside = _atom(zeros, size, (0.0, COLLAPSED)) - free
    base = best.log_likelihood if best else free
    count = best.n_parameters if best else 1
    for k, one in enumerate(found):
        found[k] = replace(one, log_likelihood=one.log_likelihood + outside)
    return [PhaseLaw("rank-collapse", base + inside, count, size, "almost all values are zero")]
