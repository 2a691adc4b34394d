"""References of systems: entries of a BibTeX file, named by their keys."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
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


PLACE = re.compile(
    r"(?:Algorithm|Appendix|Claim|Conjecture|Corollary|Definition|Equations?|Figures?|Lemma|Proposition"
    r"|Result|Sections?|Table|Theorems?) [A-Z]?\d*"
)
"""Beginning of a place in a paper, such as "Theorem 2"."""

DERIVATION = re.compile(r"derivations/([a-z]+(?:-[a-z]+)*) ((?:\(\d+\))(?:, \(\d+\))*)")
WORK = re.compile(r"(arXiv:\d{4}\.\d{4,5}|doi:10\.[^\s,;]+|[a-z]+\d{4}[a-z]*)(?:, (.+))?")
ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


@dataclass(frozen=True)
class SourcePart:
    """One place that a claim rests on."""

    text: str
    work: str = ""  # "arXiv:2503.14121", or the key of a reference
    place: str = ""  # in that work, such as "Theorem 2"
    page: str = ""  # derivation page
    equations: tuple[int, ...] = ()  # of that page

    @property
    def precise(self) -> bool:
        """Return True if the part names an equation, theorem, section, figure or table."""
        return bool(self.equations) or bool(PLACE.match(self.place))

    @property
    def address(self) -> str:
        """Address of a paper with an arXiv number or DOI; empty for other parts."""
        kind, _, number = self.work.partition(":")
        sites = {"arXiv": "https://arxiv.org/abs/", "doi": "https://doi.org/"}
        return sites[kind] + number if number else ""


def source_parts(source: str) -> Iterator[SourcePart]:
    """Split a claim's source at its semicolons; parts in free words stay text."""
    for text in filter(None, (part.strip() for part in source.split(";"))):
        if match := DERIVATION.fullmatch(text):
            equations = tuple(int(number) for number in re.findall(r"\d+", match[2]))
            yield SourcePart(text, page=match[1], equations=equations)
        elif match := WORK.fullmatch(text):
            yield SourcePart(text, work=match[1], place=match[2] or "")
        else:
            yield SourcePart(text)


def works_of(source: str) -> list[str]:
    """Works that a source names: arXiv numbers wherever they stand, and keys of references."""
    keys = [part.work for part in source_parts(source) if part.work and ":" not in part.work]
    return keys + [match[0] for match in ARXIV.finditer(source)]
