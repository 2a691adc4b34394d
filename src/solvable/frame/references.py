"""References of systems: entries of a BibTeX file, named by their keys."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from solvable.errors import InvalidParameter, unknown_choice

FILE = "references.bib"
"""Name of the file, in the folder of a system's module or in one of the packages around it."""


@dataclass(frozen=True)
class Reference:
    """A paper or book that a system cites."""

    key: str
    """Key of the BibTeX entry."""
    bibtex: str
    """The whole entry."""


def resolved(references: Sequence[Reference | str], module: str) -> tuple[Reference, ...]:
    """Replace keys by the entries of the nearest ``references.bib`` that contains them."""
    if not any(isinstance(reference, str) for reference in references):
        return tuple(r for r in references if isinstance(r, Reference))
    entries: dict[str, str] = {}
    for folder in reversed(_folders(module)):
        entries |= read_entries(folder / FILE)
    found = []
    for reference in references:
        if isinstance(reference, str):
            if reference not in entries:
                raise InvalidParameter(
                    f"{unknown_choice('reference', reference, sorted(entries))} Keys are those of "
                    f"{FILE} in the folder of the system, or in a package around it."
                )
            reference = Reference(reference, entries[reference])
        found.append(reference)
    return tuple(found)


@cache
def read_entries(path: Path) -> Mapping[str, str]:
    """Entries of a BibTeX file by key; none if there is no file."""
    if not path.is_file():
        return {}
    entries = {}
    text = path.read_text("utf-8")
    for start in re.finditer(r"^@\w+\{([^,\s]+),", text, re.MULTILINE):
        depth = 0
        for place in range(start.start(), len(text)):
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            if text[place] == "}" and depth == 0:
                entries[start[1]] = text[start.start() : place + 1]
                break
    return entries


def _folders(module: str) -> list[Path]:
    """Return the folder of a module and of each package around it, the nearest first."""
    folders: dict[Path, None] = {}
    while module:
        file = getattr(sys.modules.get(module), "__file__", None)
        if file:
            folders.setdefault(Path(file).parent)
        module = module.rpartition(".")[0]
    return list(folders)
