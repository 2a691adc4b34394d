"""Sample cost of an activation: exponents, thresholds at a noise, and words for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite
from typing import Any

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidParameter
from solvable.links import Link, make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.message_passing.evolution import state_evolution
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
"""Directions of a sum for which thresholds are computed."""

MOST_NOISE = 1e100
"""Variance of label noise whose square is still a number."""

Ratio = float | tuple[float | None, ...] | None


@dataclass(frozen=True)
class Activation:
    """Exponents of one activation and the samples that it needs."""

    name: str
    parity: str
    information_exponent: int | None  # None, here and below, where quadrature cannot tell
    generative_exponent: int | None
    noise_sensitivity_exponent: float | None  # infinite where labels hold nothing of second order
    coefficient: float | None  # c of that exponent, of the standardised activation
    # n/d of the best first-order method; a tuple of features with a decay; None: never
    threshold_ratio: Ratio
    information_threshold_ratio: float | None  # n/d of any method
    words: tuple[str, ...]  # sentences: what that means, and what is not known and why

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: an infinite exponent is the word "infinite"."""
        names = (
            "name", "information_exponent", "generative_exponent", "noise_sensitivity_exponent",
            "coefficient", "parity", "threshold_ratio", "information_threshold_ratio",
        )  # fmt: skip
        values = {name: getattr(self, name) for name in names}
        if values["noise_sensitivity_exponent"] == inf:
            values["noise_sensitivity_exponent"] = "infinite"
        if isinstance(self.threshold_ratio, tuple):
            values["threshold_ratio"] = list(self.threshold_ratio)
        return values


@dataclass(frozen=True, repr=False)
class Activations(Shown, view="solvable.models.multi_index.activation_view"):
    """Activations compared at one noise."""

    rows: tuple[Activation, ...]
    noise: float
    directions: int
    decay: float | None  # of amplitudes k^-decay; None for equal ones

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain values for JSON, one mapping for each activation."""
        return [row.to_dict() for row in self.rows]


def compare_activations(
    names: Sequence[str],
    *,
    noise: float = 1.0,
    directions: int | None = None,
    decay: float | None = None,
) -> Activations:
    """Exponents and thresholds of activations by name or formula."""
    if not names:
        raise InvalidParameter(
            "no activation is named; allowed: names or formulas, such as 'relu'."
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
    told = f"Not told: {found.untold}." if found.untold else ""
    return Activation(
        link.name, found.parity, found.information, found.generative, found.noise_sensitivity,
        found.coefficient, threshold, information,
        tuple(filter(None, (_nature(found), _sensitivity(found, noise, threshold), *words, told))),
    )  # fmt: skip


Answer = tuple[Ratio, float | None, list[str]]


def _single(link: Link, found: LinkExponents, noise: float) -> Answer:
    """One direction: nothing where the label tells its sign, else from second moments."""
    if found.generative == 1:
        return 0.0, 0.0, []
    if found.generative is None:
        return None, None, []
    if found.generative > 2:
        bound, reason = _information_ratio(link, noise)
        first = f"a first-order method takes of order d^{found.generative / 2:g} samples"
        return None, bound, [_samples(None, bound, first), reason]
    ratio = float(AdditiveChannel((link,), (1.0,), noise).moments.weak_recovery_ratio[0])
    words = []
    if found.coefficient is not None and found.noise_sensitivity is not None:
        power = int(found.noise_sensitivity)
        leading = large_noise_ratio(power, found.coefficient, noise)
        if not isfinite(ratio):
            ratio = leading
            words = ["Labels of so much noise do not resolve it: the threshold is that law."]
        elif found.decisive_power(noise) == power and not leading / 2 < ratio < 2 * leading:
            words = ["At this noise that law has not set in."]
    bound, reason = _information_ratio(link, noise)
    if bound is not None:
        # What both tell alike differs by quadrature.
        bound = ratio if bound > 0.999 * ratio else bound
    return ratio, bound, [*words, _samples(ratio, bound, "for a first-order method"), reason]


def _samples(ratio: float | None, bound: float | None, what: str) -> str:
    """The two thresholds in words."""
    told = what if ratio is None else f"n = {format_number(ratio, 3)} d samples {what}"
    if bound is None:
        return f"{told[0].upper()}{told[1:]}." if ratio is None else f"{told}."
    if ratio is not None and bound > 0.99 * ratio:
        return f"{told}, and no method does with fewer."
    least = f"any method could do with n = {format_number(bound, 3)} d"
    return f"{told[0].upper() if ratio is None else told[0]}{told[1:]}; by information {least}."


@lru_cache(maxsize=256)
def _information_ratio(link: Link, noise: float) -> tuple[float | None, str]:
    """Samples per dimension from which labels determine one direction, or why that is not told."""
    # Beyond, differences of labels are lost to rounding, and links of degree 8 follow their law.
    exact = noise <= 1e8
    try:
        with np.errstate(all="ignore"):  # a link that is infinite at a node is refused by name
            channel = AdditiveChannel((link,), (1.0,), noise)
            ratio = state_evolution(channel).information_threshold_ratio if exact else 0.0
    except InvalidParameter as error:
        return None, f"Not told by information: {error}"
    # A first moment that is 0 by symmetry may come out as rounding, and the ratio as 0.
    return ratio or large_noise_information_ratio(link, noise), ""


def _equal(link: Link, found: LinkExponents, noise: float, directions: int) -> Answer:
    """Many equal directions: the sum may be found before; each alone takes second moments."""
    model = EqualDirections(link, directions, noise)
    ratio = model.first_order_ratio
    words = []
    if found.generative == 1:
        words.append(
            "The sum of all directions is found at any number of samples in proportion to d; the "
            "threshold is that of telling single directions beside it."
        )
        alone = model.weak_recovery_ratio if model.exact else model.leading_ratio
        if isfinite(alone) and alone > 1.01 * ratio:
            words.append(
                f"A method that leaves out the sum, as second moments of the label alone, takes "
                f"n = {format_number(alone, 3)} d."
            )
    if not isfinite(ratio):
        return None, None, [*words, _nothing_of_second_order()]
    bound = model.information_ratio
    words.append(
        f"n = {format_number(ratio, 3)} d samples tell the {directions} directions apart by a "
        f"first-order method; by information about {format_number(bound, 3)} d (many directions)."
    )
    return ratio, bound, words


def _hierarchical(
    link: Link, found: LinkExponents, noise: float, features: int, decay: float
) -> Answer:
    """Amplitudes k^-gamma: a threshold for each feature."""
    channel = power_law_channel(link.name, features=features, decay=decay, noise=noise)
    ratios = channel.moments.weak_recovery_ratio
    words = []
    if found.generative == 1:
        words.append(
            "The one direction sum_k a_k w_k is found at any number of samples in proportion to d; "
            "thresholds are those of the second moment of each feature alone."
        )
    values = tuple(float(ratio) if isfinite(ratio) else None for ratio in ratios)
    power = found.noise_sensitivity
    if all(value is None for value in values):
        return values, None, [*words, _nothing_of_second_order()]
    if power is not None and isfinite(power) and decay > 0:
        error = "" if decay <= 0.5 else (
            f"; the error falls as (n/d)^-{(1 - 1 / (2 * decay)) / power:.2g}, by information as "
            f"(n/d)^-{1 - 1 / (2 * decay):.2g}"
        )  # fmt: skip
        words.append(
            f"Feature k is found from n of order k^{2 * decay * power:g} d samples{error}."
        )
    words.append("By information: thresholds by feature are not told.")
    return values, None, words


def _nothing_of_second_order() -> str:
    return (
        "Given the label, every single direction has the variance that it has anyway: no number of "
        "samples in proportion to d finds it from second moments."
    )


def _nature(found: LinkExponents) -> str:
    """Information of a label on a direction, by symmetry and degree, in words."""
    symmetry = {"even": "Even", "odd": "Odd", "none": "Neither even nor odd"}[found.parity]
    degree = found.generative
    if degree is None:
        return f"{symmetry}: no moment of z up to degree {HIGHEST} is seen to depend on the label."
    if degree == 1:
        return (
            f"{symmetry}: the label tells the sign of <w, x>, and one direction is found at any number "
            "of samples in proportion to d (n/d = 0)."
        )
    if degree == 2:
        return f"{symmetry}: a direction is found from second moments, from a threshold in n/d on."
    return f"{symmetry}: the label tells moments of degree {degree} and above alone."


def _sensitivity(found: LinkExponents, noise: float, threshold: Ratio) -> str:
    """Effect of noise on the number of samples, in words."""
    power, c = found.noise_sensitivity, found.coefficient
    gap = found.generative != 1
    if power is None:
        return ""
    if power == inf:
        return (
            "Noise sensitivity infinite: given the label, z^2 has the mean 1 whatever the label, so that "
            "second moments never find a direction."
            + ("" if gap else " For one direction that makes no gap: first moments do.")
        )
    assert c is not None
    if not gap:
        return (
            f"Noise sensitivity {power:g} makes no gap for one direction; in a sum of many it rules each "
            f"part, to which the others are noise."
        )
    decisive = found.decisive_power(noise)
    if decisive is not None and decisive > power:
        until = _crossover(found, decisive)
        leading = large_noise_ratio(decisive, found.moments[decisive - 1], noise)
        if isinstance(threshold, float) and not leading / 2 < threshold < 2 * leading:
            return (
                "At this noise no law of large noise has set in; beyond a noise of about "
                f"{format_number(until, 2)} samples grow as noise^{power:g}."
            )
        return (
            f"c_1 = {format_number(found.moments[0], 2)} is close to 0: up to a noise of about "
            f"{format_number(until, 2)} samples grow as for an exponent of {decisive}, noise^{decisive}."
        )
    law = f"{format_number(large_noise_ratio(int(power), c, 1.0), 3)} noise^{power:g}".removesuffix(
        "^1"
    )
    if power == 1:
        return (
            f"Not noise-sensitive: at large noise n/d = {law}, and by information it is in proportion to "
            "the noise too."
        )
    return (
        f"Noise-sensitive: at large noise n/d = {law}, so that ten times the noise costs "
        f"{format_number(10.0**power)} times the samples; by information ten times."
    )


def _crossover(found: LinkExponents, decisive: int) -> float:
    """Noise at which the first moment and a higher one ask for as many samples."""
    # (1 / c_1²) Delta = (beta! / c_beta²) Delta^beta; the first non-zero moment is the smaller one
    power, first = next((k, c) for k, c in enumerate(found.moments, start=1) if c)
    other = found.moments[decisive - 1]
    ratio = large_noise_ratio(power, first, 1.0) / large_noise_ratio(decisive, other, 1.0)
    return float(ratio ** (1 / (decisive - power)))
