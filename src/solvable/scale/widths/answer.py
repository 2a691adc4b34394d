"""Answer to ``solvable scale module.py:make``: factors between widths, checks, and number of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solvable.errors import InvalidData, InvalidParameter
from solvable.fitting.devices import import_torch
from solvable.scale.forward_pass import example_inputs
from solvable.scale.question import sample_sentence
from solvable.scale.widths.coordinates import CoordinateCheck, coordinate_check
from solvable.scale.widths.rules import Make, WidthRules, made, width_rules


def answer_widths(
    make: Any,
    widths: Sequence[int],
    optimiser: str,
    check: bool,
    shape: Sequence[int] | None,
    seeds: int = 8,
) -> tuple[WidthRules, list[CoordinateCheck], str, tuple[int, ...]]:
    """Return factors from the first to the last width, both checks if asked for, and the samples.

    Raises
    ------
    InvalidParameter
        If there are fewer than two widths, or the object is no function.
    """
    if len(widths) < 2 or len(set(widths)) < len(widths) or min(widths) < 1:
        raise InvalidParameter(
            f"--width is {' '.join(map(str, widths))}; allowed: at least two different widths, as in "
            "--width 256 1024."
        )
    if not callable(make):
        raise InvalidParameter(
            f"the object is a {type(make).__name__}; allowed: a function of the width that returns a "
            "torch module, or (module, inputs)."
        )
    chosen = _with_inputs(make, shape) if shape else make
    torch = import_torch("reading a module")
    torch.manual_seed(0)  # initial scales are read from one draw
    module, inputs = made(chosen, widths[-1])
    base, base_inputs = made(chosen, widths[0])
    rules = width_rules(module, base, optimiser=optimiser, inputs=inputs, base_inputs=base_inputs)
    if all(row.parameter.width == 1 for row in rules.parameters):
        raise InvalidData(
            f"no parameter differs between widths {widths[0]} and {widths[-1]}; allowed: a function "
            "whose module grows with its argument."
        )
    checks = [
        coordinate_check(chosen, widths, corrected=corrected, optimiser=optimiser, seeds=seeds)
        for corrected in ((False, True) if check else ())
    ]
    batch = example_inputs(module, rows=2) if inputs is None else inputs
    return rules, checks, sample_sentence(module, batch, inputs is not None), tuple(widths)


def _with_inputs(make: Make, shape: Sequence[int]) -> Make:
    """Return a function that adds inputs of a shape."""

    def chosen(width: int) -> Any:
        module, _ = made(make, width)
        return module, example_inputs(module, shape, rows=4)

    return chosen
