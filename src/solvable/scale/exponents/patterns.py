r"""Patterns of feature learning, layer by layer, as tropical programs.

A pattern assigns one of four states to each hidden layer's pre-activations: they stay as in the prior
(GP), one direction is amplified in all neurons (GFL, gain D), M neurons have a mean of strength mu along
a feature (Sp), or all neurons have such a mean (Mag). The energy of a pattern is
sum over layers of Delta / 2 + alpha² chi / (2 sigma_a² <y, K, y>)   (scale 3; arXiv:2512.04165,
Equations 9 and 10). lambda_l(k) is the exponent of the eigenvalue of He_k in the kernel after layer l.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from solvable.errors import InvalidParameter
from solvable.scale.exponents.activations import find_activation
from solvable.scale.exponents.linear_forms import LinearForm, never_below
from solvable.scale.exponents.network import MOST_LAYERS, Layer, Network
from solvable.scale.exponents.tropical import Monomial, Program

Kind = Literal["GP", "GFL", "Sp", "Mag"]

ZERO = LinearForm.of(0)


@dataclass(frozen=True)
class LayerPattern:
    """State of one layer in a pattern: its kind, and the degree of the feature that the layer learns."""

    kind: Kind
    feature: int | None = None

    def __str__(self) -> str:
        return self.kind if self.feature is None else f"{self.kind}({self.feature})"


@dataclass(frozen=True)
class Candidate:
    """Pattern of a whole network, with one linear program for each route to the target."""

    name: str
    layers: tuple[LayerPattern, ...]
    programs: tuple[Program, ...]


@dataclass(frozen=True)
class _Route:
    """Route to an eigenvalue: the eigenvalue's exponent, and the layers whose states the route uses."""

    exponent: Monomial
    layers: frozenset[int]


Spectrum = dict[int, tuple[_Route, ...]]
Ranges = dict[str, tuple[LinearForm | None, LinearForm | None]]


def check_reachable(network: Network) -> list[Spectrum]:
    """Compute the spectra of the lazy network; raise an error if it cannot represent the target."""
    reachable = _spectra(network, tuple(LayerPattern("GP") for _ in network.layers), ())
    if network.degree not in reachable[-1]:
        made = ", ".join(f"He{k}" for k in sorted(reachable[-1])) or "none"
        activations = ", ".join(layer.activation.name for layer in network.layers)
        raise InvalidParameter(
            f"the target He{network.degree} cannot be represented by layers {activations[:60]}; "
            f"degrees of one direction that they represent: {made}. {_remedy(network)}"
        )
    return reachable


def _remedy(network: Network) -> str:
    """Suggest changes with which the network can represent the target."""
    layers = network.layers
    found = []
    if len(layers) < MOST_LAYERS and _represents(replace(network, layers=(*layers, layers[-1]))):
        found.append("one more layer")
    for name in ("relu", f"poly{max(network.degree, 2)}"):
        other = find_activation(name)
        changed = tuple(replace(layer, activation=other) for layer in layers)
        if _represents(replace(network, layers=changed)):
            found.append(f"{name} in all layers")
    return f"Take {' or '.join(found)}." if found else "Take a target of another degree."


def _represents(network: Network) -> bool:
    return network.degree in _spectra(network, (LayerPattern("GP"),) * len(network.layers), ())[-1]


def network_candidates(network: Network) -> tuple[Candidate, ...]:
    """Return all patterns by which a network can align with its target, each with its programs."""
    if len(network.layers) > 3 or (len(network.layers) == 3 and network.degree > 3):
        raise InvalidParameter(
            f"closed forms of all patterns of {len(network.layers)} hidden layers and "
            f"He{network.degree} take minutes; allowed: two hidden layers, or three with a degree "
            "up to 3. "
            "For deeper networks give every size a number, in the description or with --at."
        )
    rows = product(*_choices(network, check_reachable(network)))
    found = (candidate_of(network, layers) for layers in rows)
    return tuple(candidate for candidate in found if candidate.programs)


def candidate_of(network: Network, layers: tuple[LayerPattern, ...]) -> Candidate:
    """Build a pattern with its programs; there are no programs if some learning layer is not used."""
    programs = tuple(dict.fromkeys(_programs(network, layers)))
    return Candidate("-".join(map(str, layers)), layers, programs)


def _choices(network: Network, reachable: list[Spectrum]) -> list[list[LayerPattern]]:
    """List the possible states of each layer, for each feature of the layer's pre-activations."""
    found = []
    for spectrum in reachable[:-1]:
        rows = [LayerPattern("GP")]
        for degree in sorted(spectrum):
            rows += [LayerPattern(kind, degree) for kind in ("GFL", "Sp", "Mag")]
        found.append(rows)
    return found


def _programs(network: Network, layers: tuple[LayerPattern, ...]) -> Iterator[Program]:
    """Yield one program for each choice of growth and routes in which every learning layer is used."""
    learned = frozenset(i for i, pattern in enumerate(layers, 1) if pattern.kind != "GP")
    # Strengths beyond one make eigenvalues beyond order one, for which products of features no longer
    # describe the next kernel. They are allowed only in the last layer, whose kernel is only read out.
    last = network.layers[-1].activation.growth != "bounded" and layers[-1].kind == "Sp"
    strong = [(False,)] * (len(layers) - 1) + [(False, True) if last else (False,)]
    for growth in product(*strong):
        spectra = _spectra(network, layers, growth)
        seen = {
            number: spectra[number - 1].get(layers[number - 1].feature or 0, ())
            for number in sorted(learned)
        }
        # A mean may use any route to its eigenvalue; a gain multiplies the eigenvalue on every route.
        costs = [
            [routes] if layers[number - 1].kind == "GFL" else [(route,) for route in routes]
            for number, routes in seen.items()
        ]
        for end in spectra[-1].get(network.degree, ()):
            for choice in product(*costs):
                by_layer = dict(zip(seen, choice, strict=True))
                if _used(end, by_layer, layers) == learned:
                    yield _program(network, layers, growth, end, by_layer)


def _used(
    end: _Route, costs: dict[int, tuple[_Route, ...]], layers: tuple[LayerPattern, ...]
) -> frozenset[int]:
    """Return the layers that the alignment uses directly or through the inputs of a later layer."""
    used, waiting = set(), set(end.layers)
    while waiting:
        number = waiting.pop()
        used.add(number)
        # A gain multiplies a route that the alignment already contains.
        if layers[number - 1].kind in ("Sp", "Mag"):
            waiting |= costs[number][0].layers - used
    return frozenset(used)


def _program(
    network: Network,
    layers: tuple[LayerPattern, ...],
    growth: tuple[bool, ...],
    end: _Route,
    costs: dict[int, tuple[_Route, ...]],
) -> Program:
    """Build the program of a pattern along one route to the target."""
    # E = min over M, mu, D of the largest among the layers' costs and chi - lambda_{L-1}(target), within
    # their bounds   (scale 7)
    terms, constraints = [], []
    for number, routes in costs.items():
        layer, pattern = network.layers[number - 1], layers[number - 1]
        term, bounds = _layer_cost(number, layer, pattern, growth[number - 1], routes)
        terms.append(term)
        constraints += bounds
    alignment = Monomial(network.chi, meaning="alignment with the target")
    terms.append(alignment.times(end.exponent, -1))
    return Program(tuple(terms), tuple(constraints))


def _layer_cost(
    number: int, layer: Layer, pattern: LayerPattern, strong: bool, routes: tuple[_Route, ...]
) -> tuple[Monomial, list[Monomial]]:
    neurons, strength, gain = f"M{number}", f"mu{number}", f"D{number}"
    if pattern.kind == "GFL":
        # N_l D, with D >= 1 and an amplified eigenvalue of at most order one   (scale 4)
        cost = Monomial.of(
            layer.width, {gain: 1}, f"amplifying He{pattern.feature} in layer {number}"
        )
        bounds = [
            Monomial.of(0, {gain: -1}, f"layer {number} amplifies", box=True),
            *(
                Monomial.of(
                    0, {gain: 1}, f"layer {number} amplifies up to order one", box=True
                ).times(route.exponent)
                for route in routes
            ),
        ]
        return cost, bounds
    (route,) = routes
    # M mu² <Phi, K_{l-1}^-1, Phi>   (scale 4; arXiv:2512.04165, Equations 11 and 12)
    text = "specialised neurons" if pattern.kind == "Sp" else "the magnetisation"
    powers = {strength: 2} | ({neurons: 1} if pattern.kind == "Sp" else {})
    size = ZERO if pattern.kind == "Sp" else layer.width
    cost = Monomial.of(size, powers, f"{text} of layer {number}").times(route.exponent, -1)
    sign = -1 if strong else 1
    says = "at least" if strong else "at most"
    bounds = [Monomial.of(0, {strength: sign}, f"strength of layer {number} {says} one")]
    if pattern.kind == "Sp":
        bounds += [
            Monomial.of(0, {neurons: -1}, f"at least one neuron in layer {number}", box=True),
            Monomial.of(
                -layer.width, {neurons: 1}, f"at most all neurons of layer {number}", box=True
            ),
        ]
    return cost, bounds


def _spectra(
    network: Network, layers: tuple[LayerPattern, ...], growth: tuple[bool, ...]
) -> list[Spectrum]:
    """Compute the routes to each He_k's eigenvalue, in the input and after each layer."""
    reach = [layer.reach for layer in network.layers]
    # A patch of S inputs has the linear eigenvalue 1/S.
    if network.inputs.number is not None:
        scaled = reach[0] * network.inputs.constant
    elif reach[0].number is not None:
        scaled = network.inputs * reach[0].constant
    else:
        raise InvalidParameter(
            "the patch and the exponent of the inputs are both symbols; give one of them a number."
        )
    first: Spectrum = {1: (_Route(Monomial(scaled), frozenset()),)}
    spectra, ranges = [first], _ranges(network, growth)
    for number, (layer, pattern) in enumerate(zip(network.biased_layers, layers, strict=True), 1):
        positions = _difference(reach[number - 1], reach[0])
        after = LinearForm.of(1) if number == len(reach) else reach[number]
        shared = ZERO if layer.pool else _difference(after, layer.reach)
        strong = bool(growth) and growth[number - 1]
        spectra.append(
            _after_layer(
                number,
                layer,
                pattern,
                strong,
                spectra[-1],
                positions,
                shared,
                network.degree,
                ranges,
            )
        )
    return spectra


def _difference(wide: LinearForm, narrow: LinearForm) -> LinearForm:
    """Return the exponent of the number of narrow patches in a wide patch; 0 if it is not wider."""
    held = wide - narrow
    return ZERO if held.number is not None and held.number < 0 else held


def _after_layer(
    number: int,
    layer: Layer,
    pattern: LayerPattern,
    strong: bool,
    before: Spectrum,
    positions: LinearForm,
    shared: LinearForm,
    highest: int,
    ranges: Ranges,
) -> Spectrum:
    """Compute the eigenvalues after an activation, from lazy or amplified products and a spike."""
    weight = Monomial(-shared)
    after: Spectrum = {}
    for degree in range(1, highest + 1):
        routes: list[_Route] = []
        for factors in layer.activation.products(degree, tuple(sorted(before))):
            routes += _lazy(number, pattern, factors, before, positions)
        if pattern.kind in ("Sp", "Mag") and pattern.feature is not None:
            routes += _spike(number, layer, pattern, strong, degree, positions)
        # Each of the d^s patches has its own readout and thus the weight d^-s in the kernel.
        held = [_Route(weight.times(route.exponent), route.layers) for route in routes]
        if held:
            after[degree] = _undominated(held, ranges)
    return after


def _undominated(routes: list[_Route], ranges: Ranges) -> tuple[_Route, ...]:
    """Drop routes that lie below another route at all sizes and all free exponents."""
    kept: list[_Route] = []
    for route in dict.fromkeys(routes):
        if any(_dominates(other, route, ranges) for other in kept):
            continue
        kept = [other for other in kept if not _dominates(route, other, ranges)] + [route]
    return tuple(kept)


def _dominates(better: _Route, worse: _Route, ranges: Ranges) -> bool:
    """Return True if one route is never below another and uses no further layers."""
    if not better.layers <= worse.layers:
        return False
    excess = better.exponent.times(worse.exponent, -1)
    least = excess.constant
    for name, power in excess.powers:
        end = ranges[name][0 if power > 0 else 1]
        if end is None:
            return False
        least = least + end * power
    return never_below(least, ZERO)


def _ranges(network: Network, growth: tuple[bool, ...]) -> Ranges:
    """Return the bounds for the programs' free exponents."""
    found: Ranges = {}
    for number, layer in enumerate(network.layers, 1):
        strong = bool(growth) and growth[number - 1]
        found[f"M{number}"] = (ZERO, layer.width)
        found[f"mu{number}"] = (ZERO, None) if strong else (None, ZERO)
        found[f"D{number}"] = (ZERO, None)
    return found


def _lazy(
    number: int,
    pattern: LayerPattern,
    factors: tuple[int, ...],
    before: Spectrum,
    positions: LinearForm,
) -> Iterator[_Route]:
    """Yield the routes to a product of features; the eigenvalues and gains multiply."""
    # lambda_l(Phi_1 ... Phi_p) = prod lambda_{l-1}(Phi_i), times D^p   (scale 6; arXiv:2512.04165,
    # Equation 73)
    distinct = tuple(dict.fromkeys(factors))
    for routes in product(*(before[source] for source in distinct)):
        exponent, layers = Monomial(ZERO), frozenset[int]()
        for source, route in zip(distinct, routes, strict=True):
            exponent = exponent.times(route.exponent, factors.count(source))
            layers |= route.layers
        yield _Route(exponent, layers)
        if pattern.kind == "GFL" and pattern.feature in distinct:
            times = factors.count(pattern.feature or 0)
            # The amplified direction is a sum over patches; its powers have a small overlap with the
            # sum of powers over patches.
            gain = Monomial.of(positions * (1 - times), {f"D{number}": times})
            yield _Route(exponent.times(gain), layers | {number})


def _spike(
    number: int,
    layer: Layer,
    pattern: LayerPattern,
    strong: bool,
    degree: int,
    positions: LinearForm,
) -> Iterator[_Route]:
    """Yield the spike (M/N) mu^(2p) that M neurons of strength mu put on the p-th power."""
    # lambda_l(Phi^p) -> (M/N_l) mu^(2p)   (scale 5; arXiv:2512.04165, Claim i)
    activation, source = layer.activation, pattern.feature or 0
    least = activation.least_power(source, degree)
    if least is None:
        return
    power = activation.largest_power(source, degree) if strong else least
    powers = {f"mu{number}": 2 * (power or 0)}
    fraction = ZERO if pattern.kind == "Mag" else -layer.width
    powers |= {} if pattern.kind == "Mag" else {f"M{number}": 1}
    yield _Route(Monomial.of(fraction + positions * (1 - least), powers), frozenset({number}))
