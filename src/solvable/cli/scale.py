"""``solvable scale``: how data, width and depth must scale for an architecture to learn a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    from solvable.scale.scaling import Scaling


def scale(
    network: Path | None = None,
    /,
    *,
    layers: str | None = None,
    target: str | None = None,
    readout: str | None = None,
    kappa: str | None = None,
    at: str | None = None,
    symbolic: Flag = False,
    json: Flag = False,
) -> int:
    """Tell how data must scale with width and depth for a network to learn a target.

    For example:
      solvable scale --layers erf:1 --target he3
      solvable scale --layers erf:1,erf:2 --target he3 --readout mean-field
      solvable scale --layers erf:n1,erf:n2 --target he3 --symbolic
      solvable scale network.toml --json

    All sizes are powers of the input dimension d: erf:3/2 is a hidden layer of
    d^(3/2) neurons, erf:1/2:1/3 one of d^(1/2) filters on patches of d^(1/3)
    inputs. Told are the exponent of the number of samples, which patterns of
    feature learning attain it, what each layer does in them, what binds, and what
    to change to need fewer samples. All of it is exact: rational numbers, no grid.

    The file is TOML or JSON:
      kappa = "0"
      readout = "standard"            # or "mean-field"
      target = { hermite = 3 }
      layers = [ { width = "7/3", act = "erf" }, { width = "n2", act = "erf", patch = "3/4" } ]
    Instead of layers it may hold attention = { heads = "0", context = "1/2" }, or
    terms of your own: sizes and patterns, see docs/scale.md.

    Parameters
    ----------
    network
        File of a network. Or give --layers and --target.
    layers
        ACTIVATION:WIDTH or ACTIVATION:WIDTH:PATCH of each hidden layer, with commas.
    target
        heK, a Hermite polynomial of one direction, or parityK.
    readout
        standard or mean-field. [default: standard]
    kappa
        Exponent of the ridge. [default: 0]
    at
        Values of symbols, as in n1=1,n2=3/2.
    symbolic
        List all patterns with their closed forms.
    json
        Print {"exponent", "closed_form", "patterns", "ties", "warnings", "table",
        "point"}: the exponent of the number of samples, that of kappa included, is
        a rational string, null while symbols have no values.
    """
    from solvable.cli.terminal import write_json
    from solvable.scale.reading import describe, read_assignments
    from solvable.scale.scaling import scaling_of

    described = describe(network, layers=layers, target=target, readout=readout, kappa=kappa)
    found = scaling_of(described, read_assignments(at))
    if json:
        write_json(found.to_dict())
        return 0
    _tell(found, symbolic=symbolic)
    return 0


def _tell(found: Scaling, *, symbolic: bool) -> None:
    from solvable.cli.terminal import write, write_prose, write_title
    from solvable.scale import words
    from solvable.scale.forms import maximum
    from solvable.scale.scaling import energy_forms

    write_title("Scaling", words.subject(found.network))
    write("")
    write_prose(words.headline(found), style="bold")
    if found.winners:
        write("", words.pattern_table(found))
        first = found.winners[0]
        write("")
        write_prose(f"What the layers do ({first.name})", style="bold")
        write_prose(
            *(f"- {said}" for said in words.layer_sentences(first) + words.binding_sentences(first))
        )
    if symbolic or not found.winners:
        unboxed: dict[str, list[str]] = {}
        for name, forms in energy_forms(found.network, boxes=False):
            unboxed.setdefault(name, []).append(maximum(forms))
        write("", words.symbolic_table(found, unboxed))
    if found.warnings:
        write("")
        write_prose("Warnings", style="bold")
        write_prose(*(f"- {said}" for said in found.warnings))
