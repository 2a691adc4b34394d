"""Linear forms of a network's sample exponents, and the range in which the theory holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from solvable.errors import InvalidParameter, unknown_choice
from solvable.scale.exponents.energies import energy_forms
from solvable.scale.exponents.linear_forms import LinearForm
from solvable.scale.exponents.network import Description, Network
from solvable.scale.phases.diagram import (
    INFINITESIMAL,
    OPEN_BOX,
    Candidates,
    PhaseDiagram,
    PhaseLine,
    phase_diagram,
    phase_line,
)

Ends = Mapping[str, tuple[Fraction, Fraction]]


def sample_forms(network: Description) -> Candidates:
    """Return each pattern with the forms of its sample exponent, which is energy plus kappa."""
    # Gains exceed one by an infinitesimal, because a pattern of gain 1 is another pattern.
    rows = energy_forms(network, least_gain=LinearForm.symbol(INFINITESIMAL))
    return [(name, tuple(form + network.kappa for form in forms)) for name, forms in rows]


def validity(network: Description) -> list[tuple[str, LinearForm]]:
    """Return forms that are non-negative where kernels fluctuate little; names state the violation."""
    if not isinstance(network, Network):
        return []
    return [
        (
            f"width of layer {number} below {'its patch' if layer.patch is not None else 'd'}",
            layer.width - layer.reach,
        )
        for number, layer in enumerate(network.layers, 1)
    ]


def checked_box(
    models: Sequence[Description],
    axes: Sequence[str],
    box: Ends | None,
    point: Mapping[str, Fraction],
) -> dict[str, tuple[Fraction, Fraction]]:
    """Check the ranges of the axes (default 0 to 1 for patches); they must contain a network."""
    networks = [model for model in models if isinstance(model, Network)]
    found = dict(box or {})
    for layer in (layer for network in networks for layer in network.layers):
        for symbol in layer.reach.symbols.intersection(axes):
            found.setdefault(symbol, (Fraction(0), Fraction(1)))
    for name, form in (row for network in networks for row in _bounds(network)):
        held = form.at({symbol: point[symbol] for symbol in form.symbols & point.keys() - {*axes}})
        if held.symbols <= {*axes}:
            ends = {symbol: found.get(symbol, OPEN_BOX) for symbol in held.symbols}
            least = held.constant + sum(
                (
                    min(slope * Fraction(end) for end in ends[symbol])
                    for symbol, slope in held.coefficients
                ),
                Fraction(0),
            )
            if least < 0 and held.symbols:
                text = ", ".join(
                    f"{symbol} from {low} to {high}" for symbol, (low, high) in sorted(ends.items())
                )
                raise InvalidParameter(
                    f"with {text} there is {name}; allowed: ranges without it. Narrow them with --range."
                )
    return found


def _bounds(network: Network) -> Iterator[tuple[str, LinearForm]]:
    """Yield forms that must not be negative in a network; names state the violation."""
    for number, layer in enumerate(network.layers, 1):
        yield f"a width below 1 in layer {number}", layer.width
        yield f"a patch below 1 in layer {number}", layer.reach
        yield f"a patch beyond the input in layer {number}", LinearForm.of(1) - layer.reach
    for number, (layer, after) in enumerate(itertools.pairwise(network.layers), 2):
        yield (
            f"a patch of layer {number} smaller than those of layer {number - 1}",
            after.reach - layer.reach,
        )


def phases_of(
    network: Description,
    x: str,
    y: str = "",
    *,
    box: Ends | None = None,
    at: Mapping[str, Fraction] | None = None,
) -> PhaseDiagram | PhaseLine:
    """Compute the phases of a network's sample exponent over one or two of its sizes, exactly.

    Parameters
    ----------
    network : Network, Attention or OwnMonomials
        Result of :func:`read_network` or :func:`network_of_flags`.
    x, y : str
        Symbols of the network's sizes. The symbol of a numeric width is n1, n2, ... by layer, or n for
        a single layer. Without ``y`` the phases lie along a line.
    box : mapping of str to (Fraction, Fraction), optional
        Ends of the axes; default 0 to 4.
    at : mapping of str to Fraction, optional
        Values of other symbols; a size with a value keeps it.

    Returns
    -------
    PhaseDiagram or PhaseLine
        Cells and edges with rational corners.

    Raises
    ------
    InvalidParameter
        If a symbol is unknown or has no value, the two axes are the same, or the box is empty.

    Examples
    --------
    >>> from solvable.scale.exponents.network_reader import network_of_flags
    >>> line = phases_of(network_of_flags("erf:1", "he3"), "n", box={"n": (1, 7)})
    >>> [str(cell.form) for cell in line.cells], line.breakpoints
    (['(n+1)/2', '3'], (Fraction(5, 1),))
    """
    model, numbers = network.symbolic()
    point = {**numbers, **(at or {})}
    axes = (x, y) if y else (x,)
    # Check before computing the patterns, which takes time.
    for name in (*axes, *(at or {}), *(box or {})):
        if name not in model.symbols:
            raise InvalidParameter(unknown_choice("symbol", name[:60], model.symbols))
    box = checked_box([model], axes, box, point)
    rows = sample_forms(model)
    if not y:
        return phase_line(rows, x, box=box, point=point, limits=validity(model))
    return phase_diagram(rows, x, y, box=box, point=point, limits=validity(model))
