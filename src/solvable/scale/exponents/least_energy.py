"""Exact least energy of a deep network at given sizes, by one pass through its layers.

At an energy E each learning layer may cost up to E. The exponents M - n + 2 p mu of the layer's
eigenvalues grow with the budget M + 2 mu. A single choice of M and mu is best for all eigenvalues: the
strength mu grows before the number M if the powers p exceed one. So each pattern has one best spectrum at
E. The least E solves E = a(E), where a(E) is the exponent of the least alignment term   (scale 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from solvable.errors import NotConverged
from solvable.scale.exponents.network import Network
from solvable.scale.exponents.patterns import LayerPattern

Levels = tuple[tuple[int, Fraction], ...]
"""Exponents of the kernel's eigenvalues, by Hermite degree."""

ZERO = Fraction(0)


class Forward:
    """Best spectra at a given energy, for a network whose sizes all have values."""

    def __init__(self, network: Network, number: Callable[[Fraction], Any] = Fraction) -> None:
        """Choose the type of number for the computation: Fraction is exact, float is fast."""
        self.network = network
        self.degree = network.degree
        self.layers = network.biased_layers
        self.widths = [number(layer.width.constant) for layer in network.layers]
        self.chi = number(network.chi.constant)
        reach = [layer.reach.constant for layer in network.layers]
        self.first: Levels = ((1, number(network.inputs.constant * reach[0])),)
        ends = [*reach[1:], Fraction(1)]
        self.positions = [number(max(ZERO, here - reach[0])) for here in reach]
        self.shared = [
            number(ZERO if layer.pool else max(ZERO, after - here))
            for layer, here, after in zip(network.layers, reach, ends, strict=True)
        ]

    def alignment(self, levels: Levels) -> Fraction | None:
        """Return the exponent of the alignment term; None if the target is out of reach."""
        found = dict(levels).get(self.degree)
        return None if found is None else self.chi - found

    def after(
        self, number: int, pattern: LayerPattern, before: Levels, energy: Fraction
    ) -> Levels | None:
        """Compute the spectrum after a layer of at most this energy; None if the layer costs more."""
        layer, held = self.layers[number - 1], dict(before)
        source, width = pattern.feature or 0, self.widths[number - 1]
        gain = spike = None
        if pattern.kind == "GFL":
            gain = min(energy - width, -held[source])
            if gain < 0:
                return None
        elif pattern.kind != "GP":
            budget = energy + held[source]
            spike = self._best_choice(number, width, budget, pattern.kind == "Mag")
        shared, positions = self.shared[number - 1], self.positions[number - 1]
        found = []
        for degree in range(1, self.degree + 1):
            values = []
            for factors in layer.activation.products(degree, tuple(sorted(held))):
                lazy = sum(held[factor] for factor in factors)
                times = factors.count(source)
                values.append(lazy)
                if gain is not None and times:
                    values.append(lazy + times * gain + (1 - times) * positions)
            if spike is not None and (least := layer.activation.least_power(source, degree)):
                neurons, strength = spike
                strong = layer.activation.largest_power(source, degree) or 0
                response = (least if strength <= 0 else strong) * strength
                values.append(neurons - width + 2 * response + (1 - least) * positions)
            if values:
                found.append((degree, max(values) - shared))
        return tuple(found)

    def spent(self, pattern: tuple[LayerPattern, ...], energy: Fraction) -> dict[str, Fraction]:
        """Compute a pattern's neuron numbers, strengths and gains if each layer costs the energy."""
        found: dict[str, Fraction] = {}
        levels = self.first
        for number, held in enumerate(pattern, 1):
            if held.kind != "GP":
                budget = energy + dict(levels)[held.feature or 0]
                width = self.widths[number - 1]
                if held.kind == "GFL":
                    found[f"D{number}"] = min(energy - width, energy - budget)
                else:
                    everyone = held.kind == "Mag"
                    neurons, strength = self._best_choice(number, width, budget, everyone)
                    found |= {f"mu{number}": strength}
                    found |= {} if everyone else {f"M{number}": neurons}
            levels = self.after(number, held, levels, energy) or ()
        return found

    def _best_choice(
        self, number: int, width: Fraction, budget: Fraction, all_neurons: bool
    ) -> tuple[Fraction, Fraction]:
        """Find the M and mu with the largest response under M + 2 mu = budget and 0 <= M <= n."""
        if all_neurons:
            return width, min((budget - width) / 2, ZERO)
        last = number == len(self.widths)
        growth = self.layers[number - 1].activation.growth if last else "bounded"
        if growth == "polynomial" and budget > 0:
            return ZERO, budget / 2
        neurons = min(max(budget, ZERO), width)
        strength = (budget - neurons) / 2
        return neurons, min(strength, ZERO) if growth == "bounded" else strength

    def best(
        self, energy: Fraction, start: int = 1, levels: Levels | None = None
    ) -> Fraction | None:
        """Compute the least alignment term over all patterns of the layers from ``start`` on."""
        held = {self.first if levels is None else levels}
        for number in range(start, len(self.network.layers) + 1):
            new = {
                found
                for before in held
                for pattern in _patterns(before, "GFL", "Sp")
                if (found := self.after(number, pattern, before, energy)) is not None
            }
            held = _largest(new)
        terms = [term for term in map(self.alignment, held) if term is not None]
        return min(terms) if terms else None

    def least_energy(self) -> Fraction:
        """Find the least E at which some pattern has an alignment term of at most E."""
        lazy = self.first
        for number in range(1, len(self.network.layers) + 1):
            lazy = self.after(number, LayerPattern("GP"), lazy, ZERO) or ()
        high = self.alignment(lazy)
        if high is None:
            raise AssertionError("the target is out of reach of the prior")
        low, high = self._bracket(min(high, ZERO) - 200, high)
        while high - low > Fraction(1, 10**10):
            # Try the simplest rational in the bracket first. If it fails, extrapolate the alignment
            # term, which is linear on one side.
            step = high - low
            roots = (*self._roots(high, step), *self._roots(low, -step))
            for found in (_simplest(low, high), *roots):
                # The alignment term falls continuously as E grows, so that it equals E exactly once.
                if low <= found <= high and self.best(found) == found:
                    return found
            middle = (high + low) / 2
            low, high = (low, middle) if self._reached(middle) else (middle, high)
        raise NotConverged(
            f"the least energy lies between {float(low)} and {float(high)}, but no exact value was "
            "found, because the alignment term has too many corners. Give the sizes simpler exponents.",
            {"low": float(low), "high": float(high)},
        )

    def _bracket(self, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
        """Shorten the bracket in floating point; return the given bracket if rounding fails."""
        quick = Forward(self.network, float)
        below, above = float(low), float(high)
        while above - below > 1e-9:
            middle = (above + below) / 2
            term = quick.best(middle)  # type: ignore[arg-type]
            below, above = (
                (below, middle) if term is not None and term <= middle else (middle, above)
            )
        near = (
            max(low, Fraction(below) - Fraction(1, 10**7)),
            min(high, Fraction(above) + Fraction(1, 10**7)),
        )
        return near if self._reached(near[1]) and not self._reached(near[0]) else (low, high)

    def _reached(self, energy: Fraction) -> bool:
        term = self.best(energy)
        return term is not None and term <= energy

    def _roots(self, end: Fraction, step: Fraction) -> Iterator[Fraction]:
        """Find where the line through two alignment terms, at ``end`` and one step further, equals E."""
        near, far = self.best(end), self.best(end + step)
        if near is not None and far is not None and far - near != step:
            yield end + step * (end - near) / (far - near - step)

    def attaining(self, energy: Fraction, most: int) -> Iterator[tuple[LayerPattern, ...]]:
        """Yield at most ``most`` patterns that reach the energy, sorted by their learning layers."""
        count = 0
        for learned in range(len(self.network.layers) + 1):
            for pattern in self._attaining(1, (), self.first, energy, learned):
                yield pattern
                count += 1
                if count == most:
                    return

    def _attaining(
        self,
        number: int,
        prefix: tuple[LayerPattern, ...],
        levels: Levels,
        energy: Fraction,
        learned: int,
    ) -> Iterator[tuple[LayerPattern, ...]]:
        left = len(self.network.layers) + 1 - number
        if learned > left:
            return
        if not left:
            term = self.alignment(levels)
            if term is not None and term <= energy:
                yield prefix
            return
        term = self.best(energy, number, levels)
        if term is None or term > energy:
            return
        for pattern in _patterns(levels, "GFL", "Sp", "Mag"):
            less = pattern.kind != "GP"
            found = self.after(number, pattern, levels, energy) if learned or not less else None
            if found is not None:
                yield from self._attaining(
                    number + 1, (*prefix, pattern), found, energy, learned - less
                )


def _patterns(levels: Levels, *kinds: str) -> Iterator[LayerPattern]:
    yield LayerPattern("GP")
    for degree, _ in levels:
        for kind in kinds:
            yield LayerPattern(kind, degree)  # type: ignore[arg-type]


def _largest(spectra: set[Levels]) -> set[Levels]:
    """Drop each spectrum that is below another spectrum in all eigenvalues."""

    def below(lower: Levels, upper: Levels) -> bool:
        held = dict(upper)
        return all(degree in held and value <= held[degree] for degree, value in lower)

    kept: list[Levels] = []
    for levels in spectra:
        if not any(below(levels, other) for other in kept):
            kept = [other for other in kept if not below(other, levels)] + [levels]
    return set(kept)


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the rational with the least denominator in an interval (Stern-Brocot)."""
    whole = -(-low.numerator // low.denominator)
    if whole <= high:
        return Fraction(whole)
    floor = low.numerator // low.denominator
    return floor + 1 / _simplest(1 / (high - floor), 1 / (low - floor))
