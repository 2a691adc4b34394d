"""Description of a system: parameters, presets, claims and examples."""

from __future__ import annotations

import math
from typing import Any

from solvable.cli.terminal import write, write_title
from solvable.frame.system import Preset, System
from solvable.plots.tables import Column, Table
from solvable.study.content import parameter_rows
from solvable.study.parameters import format_settings


def description(system: System) -> dict[str, Any]:
    """Return the description of a system for JSON."""
    fields = system.parameters.model_fields
    return {
        "name": system.name,
        "title": system.title,
        "version": system.version,
        "parameters": {
            row.name: {
                "required": fields[row.name].is_required(),
                "default": None
                if fields[row.name].is_required()
                else fields[row.name].get_default(call_default_factory=True),
                "allowed": row.allowed,
                "meaning": row.meaning,
            }
            for row in parameter_rows(system.parameters, {})
        },
        "presets": {
            name: {
                "description": preset.description,
                "grid": {key: list(values) for key, values in preset.grid.items()},
                "replicates": preset.replicates,
            }
            for name, preset in system.presets.items()
        },
        "claims": {
            claim.name: {"statement": claim.statement, "source": claim.source}
            for claim in system.claims
        },
        "references": [reference.key for reference in system.references],
    }


def write_description(system: System, command: str | None = None) -> None:
    """Print the description of a system; for a command, the relevant parts, with examples."""
    write_title(f"{system.name}: {system.title}")
    parts = {"Parameters, for --set": _parameters(system)}
    if command != "theory":
        parts["Presets"] = _presets(system)
    if command is None and system.claims:
        parts["Claims"] = _claims(system)
    for heading, table in parts.items():
        write("")
        write_title(heading)
        write(table)
    write("")
    if command is not None:
        write_title("Examples")
        write(*(f"  {example}" for example in _examples(system, command)))


def _table(*columns: str) -> Table:
    first, *rest = columns
    return Table(Column(first, wrap=False), *rest, indented=True)


def _parameters(system: System) -> Table:
    table = _table("name", "default", "allowed", "meaning")
    for row in parameter_rows(system.parameters, {}):
        required = system.parameters.model_fields[row.name].is_required()
        table.add(row.name, "required" if required else row.values, row.allowed, row.meaning)
    return table


def _presets(system: System) -> Table:
    table = _table("name", "tasks", "description")
    for name, preset in system.presets.items():
        points = math.prod(len(values) for values in preset.grid.values())
        table.add(name, f"{points} points x {preset.replicates}", preset.description)
    return table


def _claims(system: System) -> Table:
    table = _table("name", "statement", "source")
    for claim in system.claims:
        table.add(claim.name, claim.statement, claim.source)
    return table


def _examples(system: System, command: str) -> list[str]:
    axis = _axis(next(iter(system.presets.values()), None))
    settings = f" --set {format_settings(axis)}" if axis else ""
    if command == "theory":
        return [
            f"solvable theory {system.name}",
            f"solvable theory {system.name}{settings} --json",
        ]
    last = list(system.presets)[-1] if system.presets else "quick"
    return [
        f"solvable run {system.name}",
        f"solvable run {system.name}{settings} --seeds 5",
        f"solvable run {system.name} --preset {last} --output results/{system.name}",
    ]


def _axis(preset: Preset | None) -> dict[str, list[Any]]:
    """Return two values of the longest axis of a preset, as an example of a grid."""
    if preset is None or not preset.grid:
        return {}
    name, values = max(preset.grid.items(), key=lambda item: len(item[1]))
    return {name: sorted({values[0], values[-1]}, key=list(values).index)}
