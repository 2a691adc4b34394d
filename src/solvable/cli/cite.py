"""``solvable cite``: the BibTeX of what a result rests on."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from solvable.cli.settings import Flag


def cite(
    system: Annotated[str, Parameter(show_default=False)], /, *more: str, json: Flag = False
) -> int:
    """Print the BibTeX entries that systems rest on, each once.

    For example:
      solvable cite sequential-recovery
      solvable cite sequential-recovery compositional-target > references.bib

    Parameters
    ----------
    system
        Name of a system.
    more
        More systems.
    json
        Print JSON: {"references": [{"key", "bibtex"}]}.
    """
    from solvable.cli.terminal import write, write_json
    from solvable.frame.registry import load

    references = {one.key: one for name in (system, *more) for one in load(name).references}
    if json:
        entries = [{"key": one.key, "bibtex": one.bibtex} for one in references.values()]
        write_json({"references": entries})
    else:
        write(*(f"{one.bibtex.strip()}\n" for one in references.values()))
    return 0
