"""``solvable list``: what is installed, and what a system offers."""

from __future__ import annotations

from solvable.cli.options import Flag


def list_systems(*systems: str, json: Flag = False) -> int:
    """List the installed systems, or the parameters, presets and claims of some.

    For example:
      solvable list
      solvable list sequential-recovery
      solvable list --json

    Parameters
    ----------
    systems
        Names of systems to describe; none lists all with their titles.
    json
        Print JSON.
    """
    from solvable.cli.terminal import write, write_json

    if systems:
        from solvable.cli.describe import description, write_description
        from solvable.frame.registry import load

        loaded = [load(name) for name in systems]
        if json:
            write_json({"systems": [description(system) for system in loaded]})
        else:
            for system in loaded:
                write_description(system)
        return 0
    from dataclasses import asdict

    from solvable.frame.registry import available

    found = available()
    if json:
        write_json({"systems": [asdict(one) for one in found]})
        return 0
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("system", "title", "package"):
        table.add_column(column, overflow="fold", no_wrap=column == "system")
    for one in found:
        table.add_row(one.name, one.title, one.package)
    write(table)
    return 0
