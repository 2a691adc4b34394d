"""Sphinx extension: papers statement by statement, and their summary, from the tables in docs/papers."""

from __future__ import annotations

import csv
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from solvable.frame.registry import load

FOLDER = Path(__file__).parent / "papers"
PRESETS = FOLDER / "files" / "paper-presets.csv"
"""One row per system whose preset `paper` ran to its end, by benchmarks/paper_presets.py."""
STATUSES = ("one command", "in part", "missing")
"""States of an item, best first."""


class Item(NamedTuple):
    """Statement or figure of a paper: a table ``[[item]]``."""

    title: str
    command: str
    claim: str
    agrees: str
    missing: str

    @property
    def status(self) -> str:
        """State of the item, one of `STATUSES`."""
        if not self.command:
            return "missing"
        return "in part" if self.missing else "one command"

    @property
    def claims(self) -> list[str]:
        """Names of the claims that give the verdict."""
        return [name.strip() for name in self.claim.split(",") if name.strip()]


class Paper(NamedTuple):
    """Paper with its items in the order of the paper."""

    name: str
    title: str
    arxiv: str
    systems: list[str]
    items: list[Item]

    @property
    def page(self) -> str:
        """Page of a system that shows the paper."""
        return f"systems/{self.systems[0]}"

    def system_of(self, item: Item) -> str:
        """Return the system that an item's claims belong to: that of its command, or the first."""
        words = item.command.split()
        named = words[2] if words[1:2] in (["run"], ["theory"]) else ""
        return named or self.systems[0]


def read_paper(path: Path) -> Paper:
    """Read one table; unknown or lacking keys raise an error that names them."""
    table: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    items = table.pop("item", [])
    _demand(table, ("title", "arxiv", "systems"), path.name)
    for number, item in enumerate(items, 1):
        _demand(item, Item._fields, f"{path.name}, item {number}")
    return Paper(path.stem, items=[Item(**item) for item in items], **table)


def _demand(table: dict[str, Any], keys: Iterable[str], place: str) -> None:
    """Raise an error unless a table has exactly these keys."""
    allowed = list(keys)
    if set(table) != set(allowed):
        raise ValueError(f"{place} has the keys {sorted(table)}; allowed: {', '.join(allowed)}.")


def read_papers() -> list[Paper]:
    """Read all tables, in the order of their names."""
    return [read_paper(path) for path in sorted(FOLDER.glob("*.toml"))]


def counts(items: Iterable[Item]) -> str:
    """Return a phrase such as "6 by one command, 4 in part, 1 missing"."""
    found = Counter(item.status for item in items)
    words = {"one command": "by one command"}
    return ", ".join(f"{found[status]} {words.get(status, status)}" for status in STATUSES)


def address(arxiv: str) -> str:
    """Return links to the papers of a list of arXiv numbers separated by commas."""
    numbers = [number.strip() for number in arxiv.split(",")]
    return ", ".join(f"[arXiv:{number}](https://arxiv.org/abs/{number})" for number in numbers)


def head_text(paper: Paper) -> str:
    """Return the first paragraph on a paper as MyST."""
    others = ", ".join(f"{{doc}}`{name} <{name}>`" for name in paper.systems[1:])
    also = f" (also {others})" if others else ""
    return (
        f"*{paper.title}*, {address(paper.arxiv)}{also}. {len(paper.items)} statements and figures: "
        f"{counts(paper.items)} ({{doc}}`all papers <../papers/index>`). Numbers without further words "
        "are measured, and those after ± are standard errors. A claim compares many points, and the "
        "one closest to failing decides."
    )


def item_text(paper: Paper, item: Item) -> str:
    """Return command, verdict, agreement and gaps of an item as MyST."""
    blocks = []
    if item.command:
        blocks.append(f"```{{code-block}} bash\n:class: paper-command\n\n{item.command}\n```")
    if item.claims:
        system = paper.system_of(item)
        statements = {claim.name: claim.statement for claim in load(system).claims}
        verdicts = [_claim_text(system, name, statements[name]) for name in item.claims]
        blocks.append("Verdict\n: " + "\n\n  ".join(verdicts))
    notes = (("Compared", item.agrees), ("Missing", item.missing))
    return "\n\n".join([*blocks, *(f"{name}\n: {text}" for name, text in notes if text)])


def _claim_text(system: str, name: str, statement: str) -> str:
    """Return the name of a claim, as a link to the table of its system, and its statement."""
    return f"[`{name}`](../systems/{system}.md#claims-and-their-sources): {statement}"


def preset_text(row: dict[str, str]) -> str:
    """Return the time and the verdicts of a run of a preset `paper` as MyST."""
    command = f"solvable run {row['system']} --preset paper --seed {row['seed']}"
    now = str(load(row["system"]).version)
    older = f" (version {row['version']} of the system; now {now})" if row["version"] != now else ""
    failing = [text for text in row["failing"].split("; ") if text]
    tested = int(row["hold"]) + len(failing)
    blocks = [
        f"```{{code-block}} bash\n:class: paper-command\n\n{command}\n```",
        f"Its {row['tasks']} tasks took {row['cpu_minutes']} minutes of processor time{older}. "
        f"{row['hold']} of {tested} testable claims hold; the other {row['untested']} need "
        "another preset or more replicates.",
    ]
    return "\n\n".join([*blocks, *(f"- Fails: {text}" for text in failing)])


def preset_rows(paper: Paper) -> list[dict[str, str]]:
    """Return the runs of the presets `paper` of a paper's systems."""
    with PRESETS.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["system"] in paper.systems]


class Folded(nodes.General, nodes.Element):
    """Lines behind a title that opens them."""


class FoldedTitle(nodes.General, nodes.TextElement):
    """Title of folded lines."""


def _tags(name: str) -> tuple[Any, Any]:
    """Return the functions that write the start and the end of an HTML element."""

    def visit(writer: Any, node: nodes.Element) -> None:
        writer.body.append(writer.starttag(node, name, ""))

    def depart(writer: Any, node: nodes.Element) -> None:
        writer.body.append(f"</{name}>\n")

    return visit, depart


class PaperStatements(SphinxDirective):
    """Statements of one paper, folded; the content of the directive explains the symbols."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Write folded lines per item; their text is MyST, as on other pages."""
        path = FOLDER / f"{self.arguments[0]}.toml"
        self.env.note_dependency(str(path))
        paper = read_paper(path)
        folded = [
            self._folded(item.title, item.status, item_text(paper, item)) for item in paper.items
        ]
        self.env.note_dependency(str(PRESETS))
        if runs := [preset_text(row) for row in preset_rows(paper)]:
            folded.append(self._folded("The whole preset `paper`", "", "\n\n".join(runs)))
        head = "\n\n".join([head_text(paper), "\n".join(self.content)])
        return [*self.parse_text_to_nodes(head), *folded]

    def _folded(self, title: str, status: str, text: str) -> nodes.Node:
        """Return folded lines with a title and a mark."""
        words, messages = self.parse_inline(title)
        mark = nodes.inline("", status, classes=["paper-status", status.replace(" ", "-")])
        heading = FoldedTitle("", "", *words, *([nodes.Text(" "), mark] if status else []))
        return Folded(
            "", heading, *messages, *self.parse_text_to_nodes(text), classes=["paper-item"]
        )


class PaperSummary(SphinxDirective):
    """Counts of all papers."""

    def run(self) -> list[nodes.Node]:
        """Write the total and an entry per paper."""
        papers = read_papers()
        for paper in papers:
            self.env.note_dependency(str(FOLDER / f"{paper.name}.toml"))
        return self.parse_text_to_nodes(summary_text(papers))


def summary_text(papers: list[Paper]) -> str:
    """Return the total over all papers, and the counts of each, as MyST."""
    everything = [item for paper in papers for item in paper.items]
    blocks = [
        f"{len(papers)} papers, {len(everything)} statements and figures: {counts(everything)}."
    ]
    for paper in papers:
        bar = "".join(
            f'<span class="{status.replace(" ", "-")}" style="flex-grow: {number}"></span>'
            for status in STATUSES
            if (number := sum(item.status == status for item in paper.items))
        )
        blocks.append(
            f"{{doc}}`{paper.title} <../{paper.page}>`\n"
            f": {len(paper.items)} items: {counts(paper.items)}. {address(paper.arxiv)}\n\n"
            f'  <div class="paper-bar" aria-hidden="true">{bar}</div>'
        )
    return "\n\n".join(blocks)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives and their style sheet."""
    app.add_directive("paper", PaperStatements)
    app.add_directive("papers", PaperSummary)
    app.add_node(Folded, html=_tags("details"))
    app.add_node(FoldedTitle, html=_tags("summary"))
    app.add_css_file("papers.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
