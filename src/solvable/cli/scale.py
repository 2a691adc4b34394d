"""``solvable scale``: the number of samples that a network needs, as a power of the dimension."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from solvable.cli.settings import Flag

Words = Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())]
Sizes = Annotated[list[int] | None, Parameter(consume_multiple=True, negative=())]


def scale(
    network: Path | None = None,
    /,
    *,
    layers: str | None = None,
    target: str | None = None,
    readout: str | None = None,
    kappa: str | None = None,
    at: str | None = None,
    phase: Words = None,
    box: Annotated[str | None, Parameter(name="--range")] = None,
    output: Path | None = None,
    symbolic: Flag = False,
    numbers: Words = None,
    classes: int | None = None,
    have: float | None = None,
    data: str | None = None,
    column: str | None = None,
    width: Sizes = None,
    check: Flag = False,
    optimiser: str = "adamw",
    inputs: Annotated[Sizes, Parameter(name="--input")] = None,
    seeds: int = 8,
    json: Flag = False,
) -> int:
    """Compute how samples, width and learning rate of a network must scale.

    For example:
      solvable scale module.py:make --width 256 1024
      solvable scale module.py:make --width 256 1024 --check
      solvable scale --layers erf:1 --target he3
      solvable scale --layers erf:1,erf:2 --target he3 --readout mean-field
      solvable scale --layers erf:n1,erf:n2 --target he3 --symbolic
      solvable scale network.toml --json
      solvable scale model.json
      solvable scale model.json --data digits
      solvable scale --layers erf:n1,erf:n2 --target he3 --phase n1 n2

    With module.py:make, make(width) returns a torch module, or (module, inputs): the
    output gives, for each parameter, the factors of initial scale, learning rate and
    weight decay from the first width to the last. --check trains it for four steps at
    these widths and measures whether layers change by the same size at each.

    Otherwise the output is the number of samples that a network needs to learn a
    target, as a power of d: a bound for networks that sample their posterior, and no
    statement about an optimiser.

    All sizes are powers of the input dimension d: erf:3/2 is a hidden layer of
    d^(3/2) neurons, erf:1/2:1/3 a layer of d^(1/2) filters on patches of d^(1/3)
    inputs. A pattern says how each hidden layer differs from the prior: GP (not at
    all), GFL (one direction amplified in all neurons), Sp (some neurons specialised)
    or Mag (all neurons with a small mean); Sp(1)-GP is a pattern of two layers. The
    output gives the exponent of the number of samples, the patterns that attain it,
    the role of each layer, and the active bounds. The exponents are exact rational
    numbers.

    The file is TOML or JSON:
      kappa = "0"
      readout = "standard"            # or "mean-field"
      target = { hermite = 3 }
      layers = [
        { width = "7/3", act = "erf" },
        { width = "n2", act = "erf", patch = "3/4" },
      ]
    Instead of layers the file may contain attention = { heads = "0", context = "1/2" }.

    A real model is described by a file of its sizes in numbers. Write it from torch:
      solvable.scale.describe_module(net, input_shape).save("model.json")
    No code in a file is run. Without --target the output compares targets of degree 1 to 3
    with the lazy kernel. Sizes are rounded to powers of d, and exponents to two
    digits. See docs/scale.md.

    Parameters
    ----------
    network
        File of a network. Without a file, give --layers and --target.
    layers
        ACTIVATION:WIDTH or ACTIVATION:WIDTH:PATCH of each hidden layer, separated by
        commas.
    target
        heK (Hermite polynomial of one direction) or parityK. Optional for a real model.
    readout
        standard or mean-field. [default: standard]
    kappa
        Exponent of the ridge. [default: 0]
    at
        Values of symbols, as in n1=1,n2=3/2.
    phase
        One or two symbols: winning patterns over these sizes, with a figure. The symbol of
        a width with a number is n1, n2, ... by layer, or n for a single layer.
    box
        Ends of the axes of phases, as in n1=1:7,n2=1:7. [default: 0:4]
    output
        Directory of result.json and the figures.
        [default with --phase: solvable-runs/scale-NAME-FINGERPRINT]
    symbolic
        List all patterns with the closed forms of their energies.
    numbers
        Sizes, as in d=100 N=500 kappa=0.5: compute prefactors in addition to exponents.
        Sizes that are not given are the network's powers of d. A real model has its own
        sizes; kappa=0.1 changes its ridge.
    classes
        Number of classes of a classifier trained with cross-entropy, in place of
        regression: the number of samples gets the factor 1 / log C.
    have
        Number of rows: the output states whether they are enough, by what factor, or that
        it is undecided. Needs a real model, or --numbers.
    data
        File, folder or name of a data set, as for `solvable learn`: the strength of the
        target's direction in the inputs is measured, and without --target also the
        degree of the target.
    column
        Column of the data to predict.
    width
        Widths for module.py:make: the first is that at which the learning rate was
        chosen. [default: 64 256, and with --check 64 128 256]
    check
        Coordinate check of the module as it is built, and with the factors. Exit status 1
        if the module with the factors fails it.
    optimiser
        adamw, adam or sgd.
    inputs
        Shape of one input without the batch, as in --input 3 32 32, if the first layer
        does not show it.
    seeds
        Repetitions of the check, from 2.
    json
        Print {"exponent", "closed_form", "patterns", "ties", "warnings", "point"}. The
        exponent of the number of samples includes that of kappa; it is a rational string, a
        decimal if sizes were rounded, or null while symbols have no values. Further keys:
        "table" (--symbolic), "numbers"
        (--numbers), "classes" (--classes), "model" and "overview" (real model), "data" (--data), "phases"
        (--phase). With module.py:make: {"widths", "parametrisation", "parameters",
        "samples"}, and "checks" (--check).
    """
    from solvable.cli.terminal import repeated, status_line, write, write_json
    from solvable.errors import InvalidParameter

    if network is not None and ":" in network.name:
        others = {"layers": layers, "target": target, "readout": readout, "kappa": kappa, "at": at}
        lists = {"phase": phase, "numbers": numbers}
        counts = {"classes": classes, "have": have}
        files = {"range": box, "data": data, "column": column}
        given: dict[str, object] = {**others, **lists, **counts, **files}
        if unused := [name for name, value in given.items() if value is not None]:
            raise InvalidParameter(
                f"--{unused[0]} and module.py:make are both given; allowed: --{unused[0]} with a network "
                "in exponents or a file of sizes."
            )
        return _widths(str(network), width, check, optimiser, inputs, seeds, output, json)
    if width or check or inputs:
        raise InvalidParameter(
            "--width, --check and --input need a torch module; allowed: module.py:make, where "
            "make(width) returns it."
        )
    from solvable.scale.answer_text import answer_json, answer_text
    from solvable.scale.answers import answer_of
    from solvable.scale.exponents.network_reader import read_assignments, read_ranges
    from solvable.scale.exponents.numerical_sizes import read_sizes_words
    from solvable.scale.figures import phase_figure
    from solvable.scale.files import write_files
    from solvable.scale.networks_of_data.calculator_networks import describe_real

    for name, listed in (("numbers", numbers), ("phase", phase)):
        if listed is not None and not listed:
            raise InvalidParameter(_EMPTY[name])
    flags = {"layers": layers, "target": target, "readout": readout, "kappa": kappa}
    described, real = describe_real(network, data=data, column=column, **flags)
    answer = answer_of(
        described,
        at=read_assignments(at),
        box=read_ranges(box),
        phase=phase,
        sizes=None if numbers is None else read_sizes_words(numbers),
        real=real,
        classes=classes,
        have=have,
    )
    written: list[Path] = []
    if output is not None or phase is not None:
        options: dict[str, object] = {**flags, "data": data, "column": column, "at": at}
        options |= {"range": box, "have": have, "classes": classes}
        options |= {"phase": tuple(phase or ()), "numbers": tuple(numbers or ())}
        names = [network] if network else []
        with status_line("writing files", shown=not json):
            written = write_files(
                answer.to_dict(),
                [phase_figure(answer.phases)] if answer.phases else [],
                output,
                title=described.title,
                command=repeated("scale", *names, **options),
                request=(described, *options.values(), real and real.to_dict()),
            )
    if json:
        write_json(answer_json(answer, symbolic=symbolic, files=written))
    else:
        write(*answer_text(answer, symbolic=symbolic, files=written))
    return 0


def _widths(
    name: str,
    width: list[int] | None,
    check: bool,
    optimiser: str,
    inputs: list[int] | None,
    seeds: int,
    output: Path | None,
    json: bool,
) -> int:
    """Print what changes from one width of a torch module to another, and check it."""
    from solvable.cli.terminal import repeated, status_line, write, write_json
    from solvable.probes.named_objects import imported
    from solvable.scale.files import write_files
    from solvable.scale.widths import view
    from solvable.scale.widths.answer import answer_widths

    make = imported(name, "function")
    with status_line("training at each width", shown=check and not json):
        rules, checks, samples, widths = answer_widths(
            make, width or ((64, 128, 256) if check else (64, 256)), optimiser, check, inputs, seeds
        )
    answer = view.content(rules, widths, checks, samples)
    files: list[Path] = []
    if output is not None:
        files = write_files(
            answer,
            [found.figure() for found in checks],
            output,
            title=name,
            command=repeated("scale", name, optimiser=optimiser, width=tuple(widths)),
            request=(name, widths, optimiser, check, inputs, seeds),
        )
    if json:
        write_json(answer)
    else:
        write(*view.text(rules, widths, checks, samples, name.rpartition(":")[2], files))
    return 1 if checks and checks[-1].verdict == "fails" else 0


_EMPTY = {
    "numbers": "--numbers has no size; allowed: sizes, as in --numbers d=100 or, with a real model, "
    "--numbers kappa=0.1.",
    "phase": "--phase names no symbol; allowed: one or two, as in --phase n1 n2.",
}
