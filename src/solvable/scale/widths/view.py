"""Text and tables of ``solvable scale --width`` and ``--check``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solvable.plots.prose import Part, section
from solvable.plots.tables import Cell, Column, Table
from solvable.plots.words import counted, listed
from solvable.scale.widths.coordinates import CoordinateCheck
from solvable.scale.widths.factors import IN_TORCH
from solvable.scale.widths.rules import WidthRules

KIND = (
    "Factors that carry a learning rate from one width to another; they do not choose the rate, and are "
    "no promise of a lower loss."
)
"""First line of an answer: what kind of answer it is, and what it is not."""

NAMED = 3  # parameters that a row of the table names


def headline(rules: WidthRules, widths: Sequence[int]) -> str:
    """Write how many parameters change, in one sentence."""
    rates = sum(abs(row.rate - 1) > 1e-9 for row in rules.parameters)
    starts = sum(abs(row.start - 1) > 1e-9 for row in rules.parameters)
    optimiser = IN_TORCH[rules.optimiser]
    return (
        f"From width {widths[0]} to {widths[-1]} with {optimiser}: of "
        f"{counted(len(rules.parameters), 'parameter')}, {rates} get another learning rate and {starts} "
        "another initial scale."
    )


def rule_table(rules: WidthRules) -> Table:
    """Build the table of factors, one row for all parameters with the same ones."""
    held: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for row in rules.parameters:
        factors = tuple(float(f"{value:.4g}") for value in (row.start, row.rate, row.decay))
        held[row.parameter.role, *factors].append(row.name)
    table = Table(
        "role",
        "parameters",
        Column("initial scale", right=True),
        Column("learning rate", right=True),
        Column("weight decay", right=True),
        title="Multiply by",
    )
    for (role, *numbers), names in held.items():
        shown = ", ".join(names[:NAMED])
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        table.add(role, shown + more, *(f"{value:g}" for value in numbers))
    return table


def rule_sentences(rules: WidthRules) -> list[str]:
    """Write what was read, and which numbers belong into ``forward``."""
    counts = [
        f"{count} {name if count > 1 else _single(name)}" for name, count in rules.structure.items()
    ]
    found = [f"Read from the forward pass: {listed(counts)}."] if counts else []
    found.append(f"Initial scales are those of the {rules.parametrisation} parametrisation.")
    if rules.parametrisation == "of its own":
        found[-1] = (
            "Initial scales follow no parametrisation with a name; the factors bring them to the "
            "maximal-update one."
        )
    if abs(rules.queries - 1) > 1e-9:
        found.append(
            f"Heads of attention grow with the width: multiply the queries by {rules.queries:.4g} in "
            "forward, so that scores do not grow, or let the number of heads grow instead."
        )
    found += [
        f"Not covered: {caution} over the width, which is no layer; factors may not be enough (--check)."
        for caution in rules.cautions
    ]
    if rules.branches != 1:
        found.append(
            f"The number of blocks grows: multiply the output of each residual branch by "
            f"{rules.branches:.4g} in forward."
        )
    tied = [row for row in rules.parameters if row.output != 1]
    if tied:
        found.append(
            f"{tied[0].name} is used as input and as output: multiply the outputs by "
            f"{tied[0].output:.4g} in forward."
        )
    return found


def _single(name: str) -> str:
    return name[:-2] if name.endswith("xes") else name.removesuffix("s")


def recipe(rules: WidthRules, widths: Sequence[int], function: str) -> list[str]:
    """Lines of Python that apply the factors."""
    kind = IN_TORCH[rules.optimiser]
    return [
        "from solvable.scale import optimiser_groups, rescale_start, width_rules",
        f"module, base = {function}({widths[-1]}), {function}({widths[0]})",
        f'rescale_start(module, width_rules(module, base, optimiser="{rules.optimiser}"))',
        f'groups = optimiser_groups(module, base, optimiser="{rules.optimiser}", learning_rate=...)',
        f"torch.optim.{kind}(groups)",
    ]


def text(
    rules: WidthRules,
    widths: Sequence[int],
    checks: Sequence[CoordinateCheck],
    samples: str,
    function: str,
    files: Sequence[Path],
) -> list[Part]:
    """Compose the answer in the terminal."""
    parts: list[Part] = [Cell(KIND, "dim"), Cell(headline(rules, widths), "bold")]
    parts += ["", rule_table(rules)]
    parts += section("What was read", rule_sentences(rules))
    parts += section("In Python", ())
    parts += [f"  {line}" for line in recipe(rules, widths, function)]
    if checks:
        parts += section("Coordinate check", [check.sentence for check in checks])
        for check in checks:
            parts += ["", check.table()]
    parts += section("Samples", [samples])
    return parts + (["", *(f"file     {path}" for path in files)] if files else [])


def content(
    rules: WidthRules, widths: Sequence[int], checks: Sequence[CoordinateCheck], samples: str
) -> dict[str, Any]:
    """Return the JSON of the answer."""
    held = {"widths": list(widths), **rules.to_dict(), "samples": samples}
    return held | ({"checks": [check.to_dict() for check in checks]} if checks else {})
