"""Compare the calculator of scaling arguments with a brute-force grid over the same patterns.

    python benchmarks/scale_grid.py --seed 20261204 --networks 20

The grid shares no code with the calculator: activations act through explicit products of Hermite
polynomials, each spectrum is a maximum over all paths, and numbers of neurons M, strengths mu and gains D
run over a grid that is refined around its best points. The minimum on a grid cannot be below the exact
minimum; the exit status is 1 if it is below, or above by more than 0.02.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import factorial, prod

import numpy as np

from solvable.scale import network_of_flags, scaling_of

POWERS = {
    "erf": lambda p: p % 2 == 1,
    "tanh": lambda p: p % 2 == 1,
    "relu": lambda p: p == 1 or p % 2 == 0,
    "gelu": lambda p: p == 1 or p % 2 == 0,
    "poly2": lambda p: p <= 2,
    "poly3": lambda p: p <= 3,
}
GROWS = {"erf": 0, "tanh": 0, "relu": 1, "gelu": 1, "poly2": 2, "poly3": 3}


@lru_cache
def contains(factors: tuple[int, ...], degree: int) -> bool:
    """Return True if prod He_j contains He_degree: He_a He_b = sum_k k! C(a,k) C(b,k) He_(a+b-2k)."""
    held = {0: 1}
    for factor in factors:
        new: dict[int, int] = {}
        for a, weight in held.items():
            for k in range(min(a, factor) + 1):
                step = prod(range(a - k + 1, a + 1)) * prod(range(factor - k + 1, factor + 1))
                new[a + factor - 2 * k] = new.get(
                    a + factor - 2 * k, 0
                ) + weight * step // factorial(k)
        held = new
    return held.get(degree, 0) != 0


def makes(act: str, power: int, biased: bool) -> bool:
    """Return True if E_b of the squared coefficient of z^p in act(z + b) is above 0, b random or 0."""
    return POWERS[act](power) or (biased and act in ("erf", "tanh", "relu", "gelu"))


def ways(act: str, source: int, degree: int, biased: bool = False) -> list[int]:
    """Return the powers p of the activation for which He_source^p contains He_degree."""
    return [p for p in range(1, 10) if makes(act, p, biased) and contains((source,) * p, degree)]


def energy(layers, chi, degree, kinds, values):
    """Return the exponent of the energy on arrays of free exponents; infinite outside the bounds."""
    reaches = [reach for _, _, reach in layers]
    spectrum = {1: -reaches[0]}
    total = np.full(np.broadcast(*values.values()).shape if values else (), -np.inf)
    broken = np.zeros(total.shape, dtype=bool)
    for number, (act, width, reach) in enumerate(layers, 1):
        kind, source = kinds[number - 1]
        # A non-zero mean of the activation is a random bias of all later layers.
        biased = any(before not in ("erf", "tanh") for before, _, _ in layers[: number - 1])
        positions = max(0.0, reach - reaches[0])
        after = reaches[number] if number < len(layers) else 1.0
        shared = max(0.0, after - reach)
        gain = 0.0
        if kind != "GP" and source not in spectrum:
            return None
        if kind == "GFL":
            gain = values[f"D{number}"]
            total = np.maximum(total, width + gain)
            broken |= (gain + spectrum[source] > 1e-9) & np.ones(total.shape, dtype=bool)
        if kind == "Sp":
            M, mu = values[f"M{number}"], values[f"mu{number}"]
            total = np.maximum(total, M + 2 * mu - spectrum[source])
        new = {}
        for k in range(1, degree + 1):
            best = np.full(total.shape, -np.inf)
            for size in range(1, degree + 2):
                if makes(act, size, biased):
                    for factors in combinations_with_replacement(sorted(spectrum), size):
                        if contains(factors, k):
                            lazy = sum(spectrum[j] for j in factors)
                            best = np.maximum(best, lazy)
                            if kind == "GFL" and source in factors:
                                times = factors.count(source)
                                best = np.maximum(
                                    best, lazy + times * gain - (times - 1) * positions
                                )
            if kind == "Sp" and (powers := ways(act, source, k, biased)):
                least = min(powers)
                # Strengths mu <= 0 enter with the least power, others with the growth exponent
                # of the activation.
                most = {0: least, 1: int(bool(ways(act, source, k)))}.get(GROWS[act], max(powers))
                response = np.where(mu <= 0, least * mu, most * mu)
                best = np.maximum(best, M - width + 2 * response - (least - 1) * positions)
            if np.any(best > -np.inf):
                new[k] = best - shared
        spectrum = new
    if degree not in spectrum:
        return None
    return np.where(broken, np.inf, np.maximum(total, chi - spectrum[degree]))


KEPT = 80


def grid_minimum(layers, chi, degree, kinds, rounds=16):
    """Return the least energy of one pattern on a grid that shrinks around its best points."""
    bounds = {}
    for number, ((act, width, _), (kind, _)) in enumerate(zip(layers, kinds, strict=True), 1):
        if kind == "GFL":
            bounds[f"D{number}"] = (0.0, 6.0)
        if kind == "Sp":
            bounds[f"M{number}"] = (0.0, float(width))
            bounds[f"mu{number}"] = (-2.0, 1.5 if GROWS[act] and number == len(layers) else 0.0)
    if not bounds:
        found = energy(layers, chi, degree, kinds, {})
        return np.inf if found is None else float(found)
    count = {1: 401, 2: 81, 3: 41, 4: 21, 5: 11, 6: 8}[len(bounds)]
    low, high = (np.array([ends[side] for ends in bounds.values()]) for side in (0, 1))
    spacing = (high - low) / (count - 1)
    steps = np.array(list(product((-1.0, 0.0, 1.0), repeat=len(bounds))))
    grid = np.meshgrid(*(np.arange(count),) * len(bounds), indexing="ij")
    points = low + spacing * np.stack([axis.ravel() for axis in grid], -1)
    best = np.inf
    for _ in range(rounds):
        names = dict(zip(bounds, points.T, strict=True))
        found = energy(layers, chi, degree, kinds, names)
        if found is None:
            return np.inf
        best = min(best, float(found.min()))
        # Around each of several best points, a grid of half the spacing: there may be several minima.
        kept = points[np.argsort(found, kind="stable")[:KEPT]]
        spacing = spacing / 2
        points = (kept[:, None] + steps * spacing).reshape(-1, len(bounds))
        points = np.unique(np.clip(points, low, high).round(12), axis=0)
    return best


def brute_force(layers, chi, degree):
    """Return the least energy over all patterns: each layer is lazy, amplified or specialised."""
    choices = []
    for number in range(len(layers)):
        features = [1] if number == 0 else range(1, degree + 1)
        choices.append([("GP", 0)] + [(kind, j) for kind in ("GFL", "Sp") for j in features])
    return min(grid_minimum(layers, chi, degree, kinds) for kinds in product(*choices))


def draw(rng, most_layers=3):
    """Draw a network and a target that some pattern can learn."""
    while True:
        depth = int(rng.choice([1, 1, 2, 2, 2, most_layers]))
        degree = int(rng.integers(1, 4 if depth > 2 else 6))
        acts = [str(rng.choice(list(POWERS))) for _ in range(depth)]
        widths = [Fraction(int(rng.integers(0, 37)), 12) for _ in range(depth)]
        patches = [Fraction(1)] * depth
        if rng.random() < 0.3:
            patches[0] = Fraction(int(rng.integers(1, 12)), 12)
        words = ",".join(
            f"{act}:{width}" + (f":{patch}" if patch != 1 else "")
            for act, width, patch in zip(acts, widths, patches, strict=True)
        )
        readout = "mean-field" if rng.random() < 0.3 else "standard"
        kappa = Fraction(int(rng.integers(-2, 3)), 4)
        try:
            found = scaling_of(network_of_flags(words, f"he{degree}", readout, str(kappa)))
        except ValueError:
            continue
        layers = [(a, float(w), float(p)) for a, w, p in zip(acts, widths, patches, strict=True)]
        chi = layers[-1][1] if readout == "mean-field" else 0.0
        return words, degree, readout, kappa, found, layers, chi


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20261204)
    parser.add_argument("--networks", type=int, default=20)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    wrong = 0
    for number in range(1, options.networks + 1):
        words, degree, readout, kappa, found, layers, chi = draw(rng)
        least = float(found.exponent - kappa)
        grid = brute_force(layers, chi, degree)
        excess = grid - least
        wrong += not -1e-9 < excess < 0.02
        print(
            f"{number:3d}  {words:45s} he{degree} {readout:10s} kappa {kappa!s:5s} exact "
            f"{found.exponent!s:8s} "
            f"grid {grid + float(kappa):.5f}  excess {excess:.5f}  "
            f"{', '.join(found.ties) or found.winners[0].name}",
            flush=True,
        )
    print(f"{wrong} of {options.networks} disagree")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
