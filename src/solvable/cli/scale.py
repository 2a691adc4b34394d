"""``solvable scale``: how data, width and depth must scale for an architecture to learn a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    from solvable.scale.prefactors import Numbers, Tie
    from solvable.scale.real import RealSizes
    from solvable.scale.scaling import Scaling

Sizes = Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())]


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
    numbers: Sizes = None,
    data: str | None = None,
    column: str | None = None,
    act: str | None = None,
    json: Flag = False,
) -> int:
    """Tell how data must scale with width and depth for a network to learn a target.

    For example:
      solvable scale --layers erf:1 --target he3
      solvable scale --layers erf:1,erf:2 --target he3 --readout mean-field
      solvable scale --layers erf:n1,erf:n2 --target he3 --symbolic
      solvable scale network.toml --json
      solvable scale model.json --target he3
      solvable scale model.json --data digits

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

    A real model is a file of its sizes in numbers: torch's by
      solvable.scale.describe_module(net, input_shape).save("model.json")
    or a .safetensors state dict of linear layers and --act; no code in a file is
    run. Numbers are read as powers of d, which is said. See
    docs/scale-real-models.md.

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
    numbers
        Sizes, as in d=100 N=500 kappa=0.5: prefactors, not only exponents. Layers of
        which no width is given have that power of d. A real model brings its own.
    data
        File, folder or name of a data set, as `solvable learn` takes it: how strong
        the target's direction is in the inputs is measured, not guessed, and so is
        the target's degree where --target is not given.
    column
        Column of the data to predict.
    act
        Activation between the layers of a .safetensors file.
    json
        Print {"exponent", "closed_form", "patterns", "ties", "warnings", "table",
        "point"}: the exponent of the number of samples, that of kappa included, is
        a rational string, null while symbols have no values; with prefactors also
        "tie_break" where exponents tie, and "numbers" at the sizes given; with a
        real model "model", with data "data".
    """
    from solvable.cli.terminal import write_json
    from solvable.scale.given_sizes import read_sizes_words
    from solvable.scale.prefactors import numbers_of, tie_of
    from solvable.scale.reading import read_assignments
    from solvable.scale.real import describe_real
    from solvable.scale.scaling import scaling_of

    flags = {"layers": layers, "target": target, "readout": readout, "kappa": kappa}
    described, real = describe_real(network, data=data, column=column, act=act, **flags)
    found = scaling_of(described, read_assignments(at))
    white, sizes = (found.network, {}) if real is None else real.white(found.network)
    sizes |= {} if numbers is None else read_sizes_words(numbers)
    sums = numbers_of(white, sizes) if sizes else None
    tie = tie_of(found) if sums is None else None
    if json:
        more = {"tie_break": tie} | ({} if sums is None else {"numbers": sums})
        content = found.to_dict() | {name: row and row.to_dict() for name, row in more.items()}
        write_json(content | ({} if real is None else real.to_dict()))
        return 0
    _tell(found, symbolic=symbolic, tie=tie, sums=sums, real=real)
    return 0


def _tell(
    found: Scaling,
    *,
    symbolic: bool,
    tie: Tie | None,
    sums: Numbers | None,
    real: RealSizes | None,
) -> None:
    from solvable.cli.terminal import write, write_prose, write_title
    from solvable.scale import number_words, words
    from solvable.scale.forms import maximum
    from solvable.scale.scaling import energy_forms

    write_title("Scaling", words.subject(found.network))
    if real is not None:
        write("")
        write_prose("What was read and measured", style="bold")
        write_prose(*(f"- {said}" for said in real.words()))
    write("")
    write_prose(words.headline(found), style="bold")
    if found.winners:
        write("", words.pattern_table(found))
        if tie is not None:
            write("")
            write_prose(number_words.tie_sentence(tie))
        order = {} if tie is None else {row.name: at for at, row in enumerate(tie.patterns)}
        first = min(found.winners, key=lambda winner: order.get(winner.name, 0))
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
    if sums is not None:
        write("", number_words.number_table(sums))
        write("")
        write_prose(*number_words.number_sentences(sums))
    if warnings := found.warnings + (() if sums is None else sums.warnings):
        write("")
        write_prose("Warnings", style="bold")
        write_prose(*(f"- {said}" for said in warnings))
