"""Exponents of activations and sample thresholds at a noise level, explained in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, isfinite, log
from typing import Any

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidParameter
from solvable.links import Link, make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.best_overlaps import STEP, best_overlaps, direction_curve
from solvable.models.multi_index.equal_directions import (
    EqualDirections,
    large_noise_information_ratio,
)
from solvable.models.multi_index.exponents import (
    HIGHEST,
    LinkExponents,
    exponents_of,
    large_noise_ratio,
)
from solvable.models.multi_index.target import power_law_channel
from solvable.plots.displayed import Shown
from solvable.plots.numbers import format_number

MOST_DIRECTIONS = 512
"""Largest allowed number of directions in a sum of activations."""

MOST_NOISE = 1e100
"""Largest allowed variance of the label noise; the variance's square must not overflow."""

Ratio = float | tuple[float | None, ...] | None


@dataclass(frozen=True)
class Activation:
    """Exponents of one activation, and the number of samples per dimension that it needs."""

    name: str
    parity: str
    information_exponent: int | None  # None if quadrature cannot determine the exponent
    generative_exponent: int | None
    noise_sensitivity_exponent: float | None  # infinite if E[z² | label] = 1 for every label
    coefficient: float | None  # c_beta at the noise sensitivity exponent beta
    # n/d that the best first-order method needs; with a decay, one value per feature; None if no fixed
    # n/d is enough or if the value is unknown
    threshold_ratio: Ratio
    # n/d that a method of unlimited computing time needs; with a decay, one value per feature
    information_threshold_ratio: Ratio
    words: tuple[str, ...]  # sentences that explain the values and why values are missing

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an infinite exponent becomes the word "infinite"."""
        names = (
            "name", "information_exponent", "generative_exponent", "noise_sensitivity_exponent",
            "coefficient", "parity", "threshold_ratio", "information_threshold_ratio",
        )  # fmt: skip
        values = {name: getattr(self, name) for name in names}
        if values["noise_sensitivity_exponent"] == inf:
            values["noise_sensitivity_exponent"] = "infinite"
        for name in ("threshold_ratio", "information_threshold_ratio"):
            if isinstance(values[name], tuple):
                values[name] = list(values[name])
        return values


@dataclass(frozen=True, repr=False)
class Activations(Shown, view="solvable.models.multi_index.activation_view"):
    """Exponents and thresholds of several activations at one noise level."""

    rows: tuple[Activation, ...]
    noise: float
    directions: int
    decay: float | None  # exponent of the amplitudes k^-decay; None for equal amplitudes

    def to_dict(self) -> list[dict[str, Any]]:
        """Return plain values for JSON, one mapping per activation."""
        return [row.to_dict() for row in self.rows]


def compare_activations(
    names: Sequence[str],
    *,
    noise: float = 1.0,
    directions: int | None = None,
    decay: float | None = None,
) -> Activations:
    """Compute exponents and thresholds of activations given by name or formula."""
    if not names:
        raise InvalidParameter(
            "no activation is given; allowed: names or formulas, such as 'relu'."
        )
    if not 0 <= noise <= MOST_NOISE:
        raise InvalidParameter(f"noise is {noise}; allowed: a variance from 0 to {MOST_NOISE:g}.")
    if decay is not None and not 0 <= decay <= 10:
        raise InvalidParameter(f"decay is {decay}; allowed: 0 to 10.")
    count = directions if directions is not None else (1 if decay is None else 16)
    check_integer("directions", count, 1)
    if count > MOST_DIRECTIONS:
        raise InvalidParameter(f"directions is {count}; allowed: 1 to {MOST_DIRECTIONS}.")
    links = [make_link(name) for name in names]
    rows = tuple(_row(link, float(noise), count, decay) for link in links)
    return Activations(rows, float(noise), count, decay)


def _row(link: Link, noise: float, directions: int, decay: float | None) -> Activation:
    found = exponents_of(link)
    if decay is not None:
        threshold, information, words = _hierarchical(link, found, noise, directions, decay)
    elif directions > 1:
        threshold, information, words = _equal(link, found, noise, directions)
    else:
        threshold, information, words = _single(link, found, noise)
    gaps = f"Not determined: {found.undetermined}." if found.undetermined else ""
    return Activation(
        link.name, found.parity, found.information, found.generative, found.noise_sensitivity,
        found.coefficient, threshold, information,
        tuple(filter(None, (_nature(found), _sensitivity(found, noise, threshold), *words, gaps))),
    )  # fmt: skip


Answer = tuple[Ratio, Ratio, list[str]]


def _single(link: Link, found: LinkExponents, noise: float) -> Answer:
    """Thresholds of one direction: 0 if labels depend on its sign, else second moments set them."""
    if found.generative == 1:
        return 0.0, 0.0, []
    if found.generative is None:
        return None, None, []
    if found.generative > 2:
        bound, reason = _information_ratio(link, noise)
        needed = f"a number of samples of order {_power('d', found.generative / 2)}"
        return None, bound, [_samples(None, bound, needed), reason]
    ratio = float(AdditiveChannel((link,), (1.0,), noise).moments.weak_recovery_ratio[0])
    words = []
    if found.coefficient is not None and found.noise_sensitivity is not None:
        power = int(found.noise_sensitivity)
        leading = large_noise_ratio(power, found.coefficient, noise)
        if not isfinite(ratio):
            ratio = leading
            words = ["The noise is too large for an exact threshold: n/d is the large-noise law."]
        elif found.decisive_power(noise) == power and not leading / 2 < ratio < 2 * leading:
            words = ["At this noise the threshold does not follow the large-noise law yet."]
    bound, reason = _information_ratio(link, noise)
    if bound is not None:
        # The two thresholds count as equal if they differ only by quadrature errors.
        bound = ratio if bound > 0.999 * ratio else bound
    needed = f"n = {format_number(ratio, 3)} d samples"
    return ratio, bound, [*words, _samples(ratio, bound, needed), reason]


def _samples(ratio: float | None, bound: float | None, needed: str) -> str:
    """Return a sentence on the samples that first-order methods and any method need."""
    first = f"A first-order method needs {needed}"
    if bound is None:
        return f"{first}."
    if ratio is not None and bound > 0.99 * ratio:
        return f"{first}, and no method succeeds with fewer."
    return f"{first}; with unlimited computing time n = {format_number(bound, 3)} d are enough."


def _power(base: str, exponent: float) -> str:
    """Format a power as text, such as d² or d^1.5."""
    if exponent != int(exponent):
        return f"{base}^{exponent:g}"
    digits = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(int(exponent)))
    return base if exponent == 1 else f"{base}{digits}"


@lru_cache(maxsize=256)
def _information_ratio(link: Link, noise: float) -> tuple[float | None, str]:
    """Return the n/d at which labels determine one direction, or None and the reason."""
    # Above a noise of 1e8 rounding hides the signal in the labels. There the large-noise law is accurate
    # for links up to degree 8.
    exact = noise <= 1e8
    try:
        with np.errstate(all="ignore"):  # a link that is infinite at a node raises an error below
            channel = AdditiveChannel((link,), (1.0,), noise)
            ratio = direction_curve(channel).positive_ratio if exact else 0.0
    except InvalidParameter as error:
        return None, f"The threshold with unlimited computing time is not known: {error}"
    # Rounding may turn a first moment of 0 into a small number, which would give a ratio of 0.
    return ratio or large_noise_information_ratio(link, noise), ""


def _equal(link: Link, found: LinkExponents, noise: float, directions: int) -> Answer:
    """Thresholds of single directions in a sum; first moments may find the sum from fewer samples."""
    model = EqualDirections(link, directions, noise)
    ratio = model.first_order_ratio
    words = []
    if found.generative == 1:
        words.append(
            "First moments find the sum of all directions at any n/d above 0; the threshold is that of "
            "the single directions."
        )
        alone = model.weak_recovery_ratio if model.exact else model.leading_ratio
        if isfinite(alone) and alone > 1.01 * ratio:
            words.append(
                f"A method that does not use the sum, such as second moments weighted by labels, needs "
                f"n = {format_number(alone, 3)} d."
            )
    if not isfinite(ratio):
        return None, None, [*words, _nothing_of_second_order()]
    bound = model.information_ratio
    words.append(
        f"A first-order method needs n = {format_number(ratio, 3)} d samples to find each of the "
        f"{directions} directions; with unlimited computing time about {format_number(bound, 3)} d are "
        "enough (leading order for many directions)."
    )
    return ratio, bound, words


def _hierarchical(
    link: Link, found: LinkExponents, noise: float, features: int, decay: float
) -> Answer:
    """Thresholds of all features whose amplitudes are k^-gamma."""
    channel = power_law_channel(link.name, features=features, decay=decay, noise=noise)
    ratios = channel.moments.weak_recovery_ratio
    words = []
    if found.generative == 1:
        words.append(
            "First moments find the direction sum_k a_k w_k at any n/d above 0; the thresholds in the "
            "table are those of the second moment of each feature alone."
        )
    values = tuple(float(ratio) if isfinite(ratio) else None for ratio in ratios)
    power = found.noise_sensitivity
    if all(value is None for value in values):
        return values, None, [*words, _nothing_of_second_order()]
    if power is not None and isfinite(power) and decay > 0:
        error = "" if decay <= 0.5 else (
            f"; the error falls as (n/d)^-{(1 - 1 / (2 * decay)) / power:.2g}, and with unlimited "
            f"computing time as (n/d)^-{1 - 1 / (2 * decay):.2g}"
        )  # fmt: skip
        order = f"{_power('k', 2 * decay * power)} d"
        words.append(f"Finding feature k needs a number of samples of order {order}{error}.")
    bound, reason = _information_ratios(link, channel)
    return values, bound, [*words, reason]


MOST_BEST = 12
"""Largest number of features whose thresholds with unlimited computing time are computed."""


def _information_ratios(link: Link, channel: AdditiveChannel) -> tuple[Ratio, str]:
    """Return the n/d at which labels determine each feature, or None and the reason."""
    unknown = "The thresholds of single features with unlimited computing time are not known"
    if link.parity != "even" or channel.n_directions > MOST_BEST:
        return (
            None,
            f"{unknown}; they are computed for even activations and up to {MOST_BEST} features.",
        )
    weakest = channel.noise / channel.amplitudes[-1] ** 2 + 1
    top = 2 * large_noise_information_ratio(link, weakest)
    try:
        ratios = best_overlaps(channel, ceil(log(max(top, 2.0), STEP))).threshold_ratio
    except InvalidParameter as error:
        return None, f"{unknown}: {error}"
    values = tuple(float(ratio) if isfinite(ratio) else None for ratio in ratios)
    if values[-1] is None:
        return values, ""
    return values, (
        f"With unlimited computing time n = {format_number(values[-1], 3)} d samples are enough for the "
        "weakest feature."
    )


def _nothing_of_second_order() -> str:
    return (
        "The label does not change the variance of any single direction: second moments find none of "
        "them from a number of samples proportional to d."
    )


def _nature(found: LinkExponents) -> str:
    """Return a sentence on a link's symmetry and the lowest moment of z that depends on the label."""
    symmetry = {"even": "Even", "odd": "Odd", "none": "Neither even nor odd"}[found.parity]
    degree = found.generative
    if degree is None:
        return f"{symmetry}: no moment of z up to degree {HIGHEST} visibly depends on the label."
    if degree == 1:
        return (
            f"{symmetry}: the label depends on the sign of z = <w, x>, so a linear estimator finds one "
            "direction at any n/d above 0."
        )
    if degree == 2:
        return f"{symmetry}: second moments find a direction once n/d exceeds a threshold."
    return f"{symmetry}: the label changes only the moments of z of degree {degree} and above."


def _sensitivity(found: LinkExponents, noise: float, threshold: Ratio) -> str:
    """Return a sentence on how the number of samples grows with the noise."""
    power, c = found.noise_sensitivity, found.coefficient
    gap = found.generative != 1
    if power is None:
        return ""
    if power == inf:
        return (
            "Infinite noise sensitivity exponent: E[z² | label] = 1 for every label, so second moments "
            "never find a direction."
            + ("" if gap else " For one direction this does no harm: first moments find it.")
        )
    assert c is not None
    if not gap:
        return (
            f"The noise sensitivity exponent {power:g} has no effect on one direction. It matters in a "
            "sum of many, where each part is noise for the others."
        )
    decisive = found.decisive_power(noise)
    if decisive is not None and decisive > power:
        until = _crossover(found, decisive)
        leading = large_noise_ratio(decisive, found.moments[decisive - 1], noise)
        if isinstance(threshold, float) and not leading / 2 < threshold < 2 * leading:
            return (
                "At this noise the threshold follows no large-noise law yet; beyond a noise of about "
                f"{format_number(until, 2)} it grows as {_power('noise', power)}."
            )
        return (
            f"c_1 = {format_number(found.moments[0], 2)} is close to 0: up to a noise of about "
            f"{format_number(until, 2)} the threshold grows as {_power('noise', decisive)}, as for an "
            f"exponent of {decisive}."
        )
    constant = format_number(large_noise_ratio(int(power), c, 1.0), 3)
    law = f"{constant} {_power('noise', power)}"
    if power == 1:
        return (
            f"Not noise-sensitive: at large noise n/d = {law}, and no method avoids this growth in "
            "proportion to the noise."
        )
    return (
        f"Noise-sensitive: at large noise n/d = {law}, so ten times the noise costs a first-order method "
        f"{format_number(10.0**power)} times the samples, and a method of unlimited computing time ten "
        "times."
    )


def _crossover(found: LinkExponents, decisive: int) -> float:
    """Noise at which the first non-zero moment c_1 and a higher moment give the same threshold."""
    # (1 / c_1²) Delta = (beta! / c_beta²) Delta^beta   (multi-index 14)
    power, first = next((k, c) for k, c in enumerate(found.moments, start=1) if c)
    other = found.moments[decisive - 1]
    ratio = large_noise_ratio(power, first, 1.0) / large_noise_ratio(decisive, other, 1.0)
    return float(ratio ** (1 / (decisive - power)))
