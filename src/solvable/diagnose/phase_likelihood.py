"""Phase of a spectrum: the laws of all six phases are fitted to the same values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvable.diagnose.bulk_law import WholeBulk
from solvable.diagnose.smooth_law import SmoothLaw, fit_smooth

COLLAPSED = 0.9  # smallest share of zeros in the phase rank-collapse


@dataclass(frozen=True)
class PhaseLaw:
    """Fitted law: the most likely law of a phase."""

    phase: str  # one of the six phases
    log_likelihood: float  # log-likelihood of all values, in nats
    n_parameters: int  # number of fitted parameters
    size: int  # number of values
    what: str  # description of the law
    smooth: SmoothLaw | None = None  # the fitted law if the law has no bulk
    decay: float = 0.0  # decay exponent gamma if the strengths follow a power law; else 0

    @property
    def score(self) -> float:
        """Penalised log-likelihood: each parameter costs half the logarithm of the number of values."""
        return self.log_likelihood - 0.5 * self.n_parameters * float(np.log(self.size))


def phase_laws(
    values: np.ndarray, bulk: WholeBulk | None, n_outliers: int, *, believed: bool = False
) -> list[PhaseLaw]:
    """Best law of every phase, most likely first   (spectra 10)."""
    # Sum of the log-densities of all p values; each parameter costs log(p)/2   (spectra 10). f is the
    # bulk with its rounded edge, g_k and h_gamma are densities of the K outliers.
    # random-like                  log-likelihood sum log f
    # one signal per outlier       sum_{i <= p-K} log f + sum_k log g_k - log(p! / (p-K)!):
    #                              bleeding-out if the strongest outlier is within its own width of the
    #                              edge, else bulk+spikes
    # signals of a power law       sum log((1 - pi) f + pi h_gamma): bulk+spikes if the signals are fewer
    #                              than those from which the weakest merge, else bulk-decay
    # no bulk                      a smooth law: heavy-tailed with a power-law tail, else bulk-decay
    # rank-collapse                any of these laws with nine zeros in ten values
    # Values ascend and zeros are exact; values of both signs are measured from the centre.
    laws: list[PhaseLaw] = []
    signed = bulk.signed if bulk is not None else bool((values < 0).any())
    zeros = 0 if signed else int((values == 0).sum())
    if bulk is not None:
        laws += _bulk_phases(values, bulk, n_outliers)
    moduli = np.abs(values) if signed else values[zeros:]
    # Values of a bulk repel and are closer to the density than independent values, by the square root
    # of their number. A sum of log-densities lacks this evidence, and the cost of ten signals alone
    # would decide. So if the bulk passes its test and holds most values, laws without a bulk are
    # left out.
    if not (believed and laws):
        laws += _smooth_phases(moduli[moduli > 0], zeros, signed)
    if bulk is not None and laws:
        # A bulk without shrinkage does not predict zeros, so the zeros are a separate atom.
        cost = _atom(zeros, values.size) if bulk.shift <= 0 and not signed else 0.0
        laws = [
            law if law.smooth else replace(law, log_likelihood=law.log_likelihood + cost)
            for law in laws
        ]
    laws += _collapse(laws, zeros, values.size)
    best: dict[str, PhaseLaw] = {}
    for law in sorted(laws, key=lambda law: -law.score):
        best.setdefault(law.phase, law)
    return list(best.values())


def _bulk_phases(values: np.ndarray, bulk: WholeBulk, n_outliers: int) -> list[PhaseLaw]:
    p = values.size
    fitted = 1 + (bulk.shift != 0)
    density = bulk.log_density(values)
    laws = [PhaseLaw("random-like", float(density.sum()), fitted, p, "noise")]
    for count in {n_outliers, 1} - {0}:
        laws += _free_spikes(values, bulk, density, count, fitted)
    if n_outliers:
        laws += _pooled_spikes(values, bulk, density, n_outliers, fitted)
    return laws


def _free_spikes(
    values: np.ndarray, bulk: WholeBulk, density: np.ndarray, count: int, fitted: int
) -> list[PhaseLaw]:
    p = values.size
    tops = values[-count:]
    places = float(np.log(np.arange(p - count + 1, p + 1)).sum())
    total = float(density[:-count].sum()) + float(bulk.log_spikes(tops).sum()) - places
    # Distance of the strongest outlier from the edge, in units of the distance of a certain signal.
    x = bulk.law.place(bulk.separated * bulk.law.threshold) * bulk.scale - bulk.shift
    top = float(bulk.modulus(tops[-1:])[0])
    away = (top - x) / float(bulk.width(np.array([max(x, top)]))[0])
    outside, inside = 0.5 * min(away, 0.0) ** 2, 0.5 * max(away, 0.0) ** 2
    words = f"noise and {count} {'signal' if count == 1 else 'signals'}"
    return [
        PhaseLaw("bulk+spikes", total - outside, fitted + count, p, words),
        PhaseLaw("bleeding-out", total - inside, fitted + count, p, f"{words} at the edge"),
    ]


def _pooled_spikes(
    values: np.ndarray, bulk: WholeBulk, density: np.ndarray, n_outliers: int, fitted: int
) -> list[PhaseLaw]:
    """Two laws with power-law strengths: few separate signals, and so many signals that they merge."""
    from scipy.optimize import minimize, minimize_scalar

    p = values.size
    # Far below the cut the signals' density is zero, so only the noise term is evaluated.
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
    return [PhaseLaw(name, value, fitted + 2, p, words, decay=at) for name, value, at in both]


def _smooth_phases(positive: np.ndarray, zeros: int, signed: bool) -> list[PhaseLaw]:
    size = positive.size + zeros
    # Fewer than 30 values fit any law.
    if positive.size < 30 or positive.min() == positive.max():
        return []
    # Both signs are equally likely.
    atom = _atom(zeros, size) - signed * size * float(np.log(2))
    laws = []
    for power_tail, shifted, phase, words in (
        (True, False, "heavy-tailed", "a power-law tail without a bulk"),
        (True, True, "heavy-tailed", "a power law lowered by a threshold"),
        (False, False, "bulk-decay", "a smooth law without a power-law tail"),
    ):
        law = fit_smooth(positive, power_tail=power_tail, shifted=shifted)
        count = law.n_parameters + (zeros > 0)
        laws.append(PhaseLaw(phase, law.log_likelihood + atom, count, size, words, law))
    return laws


def _atom(zeros: int, size: int, bound: tuple[float, float] = (0.0, 1.0)) -> float:
    """Largest log-probability of the observed zeros, with bounds on the probability of a zero."""
    if zeros in (0, size) and bound == (0.0, 1.0):
        return 0.0
    share = float(np.clip(zeros / size, max(bound[0], 1e-12), min(bound[1], 1 - 1e-12)))
    return float(zeros * np.log(share) + (size - zeros) * np.log1p(-share))


def _collapse(laws: list[PhaseLaw], zeros: int, size: int) -> list[PhaseLaw]:
    """Best law with at least nine zeros in ten values; all other laws get at most this share of zeros."""
    if zeros == 0:
        return []
    best = max(laws, key=lambda law: law.score, default=None)
    if best is None and zeros < COLLAPSED * size:
        return []
    free = _atom(zeros, size)
    inside = _atom(zeros, size, (COLLAPSED, 1.0)) - free
    outside = _atom(zeros, size, (0.0, COLLAPSED)) - free
    base = best.log_likelihood if best else free
    count = best.n_parameters if best else 1
    for k, law in enumerate(laws):
        laws[k] = replace(law, log_likelihood=law.log_likelihood + outside)
    return [PhaseLaw("rank-collapse", base + inside, count, size, "almost all values are zero")]
