"""``solvable cite``: BibTeX entries of the papers behind a system."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from solvable.cli.settings import Flag


def cite(
    system: Annotated[str, Parameter(show_default=False)], /, *more: str, json: Flag = False
) -> int:
    """Print the BibTeX entries of the papers behind systems, each once.

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

    cited = (reference for name in (system, *more) for reference in load(name).references)
    references = {reference.key: reference for reference in cited}
    if json:
        write_json({"references": [asdict(reference) for reference in references.values()]})
    else:
        write(*(f"{reference.bibtex.strip()}\n" for reference in references.values()))
    return 0
