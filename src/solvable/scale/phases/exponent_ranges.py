"""Linear forms of a network's sample exponents, and the range in which the theory holds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
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
    phase_diagram,
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
    model: Description, axes: Sequence[str], box: Ends | None, point: Mapping[str, Fraction]
) -> dict[str, tuple[Fraction, Fraction]]:
    """Check the ranges of the axes (default 0 to 1 for patches): their corners must be networks."""
    found = dict(box or {})
    layers = model.layers if isinstance(model, Network) else ()
    for symbol in {symbol for layer in layers for symbol in layer.reach.symbols}:
        found.setdefault(symbol, (Fraction(0), Fraction(1)))
    # Sizes are linear in the symbols, so that they are largest and smallest at corners.
    for corner in itertools.product(*(found.get(axis, OPEN_BOX) for axis in axes)):
        there = model.at({**point, **dict(zip(axes, corner, strict=True))})
        reach = [layer.reach for layer in getattr(there, "layers", ())]
        for number, (before, after) in enumerate(itertools.pairwise(reach), 2):
            if (after - before).constant < 0:
                raise InvalidParameter(
                    f"layer {number} has patches of d^{after} after patches of d^{before} at an end of "
                    "the range; allowed: patches that do not shrink. Narrow --range."
                )
    return found


def phases_of(
    network: Description,
    x: str,
    y: str = "",
    *,
    box: Ends | None = None,
    at: Mapping[str, Fraction] | None = None,
) -> PhaseDiagram:
    """Compute the phases of a network's sample exponent over one or two of its sizes, exactly.

    Parameters
    ----------
    network : Network or Attention
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
    PhaseDiagram
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
    box = checked_box(model, axes, box, point)
    limits = validity(model)
    return phase_diagram(sample_forms(model), *axes, box=box, point=point, limits=limits)
