"""From a description of a network to what its sample exponent depends on, and where the theory holds."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from solvable.errors import InvalidParameter, unknown_choice
from solvable.scale.energies import energy_forms
from solvable.scale.forms import LinearForm
from solvable.scale.network import Description, Network
from solvable.scale.phases import (
    INFINITESIMAL,
    Candidates,
    PhaseDiagram,
    PhaseLine,
    phase_diagram,
    phase_line,
)

Ends = Mapping[str, tuple[Fraction, Fraction]]


def sample_forms(network: Description) -> Candidates:
    """Patterns with the forms of their sample exponent: those of the energy and kappa's.

    Gains are beyond one, be it by an infinitesimal: a pattern that ties only where it amplifies
    nothing is another one.
    """
    rows = energy_forms(network, least_gain=LinearForm.symbol(INFINITESIMAL))
    return [(name, tuple(form + network.kappa for form in forms)) for name, forms in rows]


def validity(network: Description) -> list[tuple[str, LinearForm]]:
    """Forms that are positive or zero where kernels fluctuate little, named by what is wrong else."""
    if not isinstance(network, Network):
        return []
    return [
        (
            f"width of layer {number} below {'its patch' if layer.patch is not None else 'd'}",
            layer.width - layer.reach,
        )
        for number, layer in enumerate(network.layers, 1)
    ]


def phases_of(
    network: Description,
    x: str,
    y: str = "",
    *,
    box: Ends | None = None,
    at: Mapping[str, Fraction] | None = None,
) -> PhaseDiagram | PhaseLine:
    """Phases of the sample exponent of a network over one or two of its sizes, exactly.

    Parameters
    ----------
    network : Network, Attention or OwnMonomials
        From :func:`read_network` or :func:`network_of_flags`.
    x, y : str
        Symbols of its sizes; a width that is a number is the symbol n1, n2, ... of its layer, n if
        there is one. Without ``y`` the phases lie along a line.
    box : mapping of str to (Fraction, Fraction), optional
        Ends of the axes; 0 to 4 unless said otherwise.
    at : mapping of str to Fraction, optional
        Values of other symbols; numbers of the description stay.

    Returns
    -------
    PhaseDiagram or PhaseLine
        Cells and edges with rational corners.

    Raises
    ------
    InvalidParameter
        If a symbol is unknown or has no value, both are the same, or the box is empty.

    Examples
    --------
    >>> from solvable.scale.reading import network_of_flags
    >>> line = phases_of(network_of_flags("erf:1", "he3"), "n", box={"n": (1, 7)})
    >>> [str(cell.form) for cell in line.cells], line.breakpoints
    (['(n+1)/2', '3'], (Fraction(5, 1),))
    """
    model, numbers = network.symbolic()
    point = {**numbers, **(at or {})}
    for name in (*(at or {}), *(box or {})):
        if name not in model.symbols:
            raise InvalidParameter(unknown_choice("symbol", name, model.symbols))
    for name, ends in (box or {}).items():
        if ends[0] < 0 and any(name in form.symbols for _, form in validity(model)):
            raise InvalidParameter(
                f"the range of {name} begins at {ends[0]}: a width below 1; allowed: 0 or more."
            )
    rows = sample_forms(model)
    if not y:
        return phase_line(rows, x, box=box, point=point, limits=validity(model))
    return phase_diagram(rows, x, y, box=box, point=point, limits=validity(model))
