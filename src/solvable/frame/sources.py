"""Sources of claims: a place in a paper, or an equation of a derivation page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
