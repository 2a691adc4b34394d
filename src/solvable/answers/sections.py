"""Parts of an answer, and their order in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from solvable.plots.figure import Figure
from solvable.plots.tables import Cell, Table


@dataclass(frozen=True)
class Items:
    """List with a mark in front of each sentence."""

    sentences: Sequence[str]
    style: str = ""


@dataclass(frozen=True)
class Heading:
    """Heading inside a section."""

    text: str


@dataclass(frozen=True)
class Folded:
    """Parts that a click opens on a page, and that a terminal shows with ``--details``."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Picture:
    """Picture for a page alone, with its own drawing."""

    title: str
    draw: Callable[[], str]  # returns an SVG element, or the address of an image
    caption: str = ""
    name: str = ""  # anchor of the picture
    remarks: Sequence[str] = ()  # sentences that a click opens


@dataclass(frozen=True)
class Gallery:
    """Small pictures next to each other, below a key of their colours."""

    pictures: Sequence[Picture]
    key: Sequence[tuple[str, str]] = ()  # label and colour


Part = str | Cell | Items | Heading | Folded | Picture | Gallery | Table | Figure
"""A sentence, which a terminal shows with ``--details`` alone if its style is "hint"; or another part."""


@dataclass(frozen=True)
class Section:
    """Parts under a heading."""

    title: str
    parts: Sequence[Part]
    name: str = ""  # anchor on the page
    on_page: bool = False  # True if a terminal leaves the section out


@dataclass(frozen=True)
class Answer:
    """Answer of a tool: the sentences that a person needs first, then sections."""

    title: str
    lead: Sequence[Part]
    sections: Sequence[Section]
    cards: Sequence[tuple[str, str, str]] = ()  # number, what it counts, detail
    commands: Sequence[tuple[str, str]] = ()  # what a command does, and its text
    facts: Mapping[str, object] = field(default_factory=dict)  # seed, seconds, versions
    made_by: str = "solvable report"  # mark of the kind of page; a page replaces its own kind alone


def terminal_parts(answer: Answer, *, details: bool = False) -> list[str | Cell | Table]:
    """Return what a command prints: the lead, then the sections with a blank line before each."""
    shown = list(_printed(answer.lead, details))
    for section in answer.sections:
        parts = [] if section.on_page else list(_printed(section.parts, details))
        if parts:
            shown += ["", Cell(section.title, "bold"), *parts]
    return shown


def listed_parts(sentences: Sequence[str]) -> list[Part]:
    """Return a lone sentence as it is, and several as a list."""
    return [*sentences] if len(sentences) < 2 else [Items(sentences)]


def figures_of(answer: Answer) -> list[Figure]:
    """Return the figures of all sections in their order."""
    parts = (part for section in answer.sections for part in flat(section.parts))
    return [part for part in parts if isinstance(part, Figure)]


def flat(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the parts, with those that a click opens in their place."""
    for part in parts:
        if isinstance(part, Folded):
            yield from flat(part.parts)
        else:
            yield part


def _printed(parts: Sequence[Part], details: bool) -> Iterator[str | Cell | Table]:
    """Yield the parts for a terminal; a table has a blank line before and after it."""
    begun = after_table = False
    for part in flat(parts) if details else parts:
        for line in _lines(part, details):
            if after_table or (begun and isinstance(part, Table | Heading)):
                yield ""
            yield line
            begun, after_table = True, isinstance(part, Table)


def _lines(part: Part, details: bool) -> list[str | Cell | Table]:
    """Return what a terminal shows of a part."""
    match part:
        case Figure() | Picture() | Gallery() | Folded():
            return []
        case Heading():
            return [Cell(part.text, "bold")]
        case Items():
            return [Cell(f"- {sentence}", part.style) for sentence in part.sentences]
        case Table():
            return [part.printed(details=details)]
        case Cell(style="hint"):
            return [Cell(part.text, "dim")] * details
        case Cell(style="yellow"):
            return [Cell(f"! {part.text}", "yellow")]
        case _:
            return [part if isinstance(part, Cell) else Cell(part)]
