"""``solvable list``: installed systems, their parameters, presets and claims."""

from __future__ import annotations

from dataclasses import asdict

from solvable.cli.settings import Flag


def list_systems(*systems: str, json: Flag = False) -> int:
    """List the installed systems, or the parameters, presets and claims of given ones.

    For example:
      solvable list
      solvable list sequential-recovery
      solvable list --json

    Parameters
    ----------
    systems
        Names of systems to describe; without names, all systems are listed with their titles.
    json
        Print JSON.
    """
    from solvable.cli.terminal import write, write_json
    from solvable.frame import registry
    from solvable.plots.tables import Column, Table

    if systems:
        from solvable.cli.describe import description, write_description

        loaded = [registry.load(name) for name in systems]
        if json:
            write_json({"systems": [description(system) for system in loaded]})
        else:
            for system in loaded:
                write_description(system)
        return 0
    found = registry.available()
    if json:
        write_json({"systems": [asdict(listing) for listing in found]})
    else:
        rows = [(listing.name, listing.title, listing.package) for listing in found]
        write(Table.of(Column("system", wrap=False), "title", "package", rows=rows))
    return 0
