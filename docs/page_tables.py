"""Directives that write tables from the registry and from the examples: claims, systems, notebooks."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from solvable.frame.references import SourcePart, source_parts
from solvable.frame.registry import load

DOCS = Path(__file__).parent
IMAGE = re.compile(r"!\[([^\]]+)\]\((\S+?\.svg)\)")
ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


class Claims(SphinxDirective):
    """Table of the claims of a system, each with a link to its source."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write the table as MyST, so that equations become references."""
        lines = ["| claim | statement | source |", "|---|---|---|"]
        for claim in load(self.arguments[0]).claims:
            source = "; ".join(self._linked(part) for part in source_parts(claim.source))
            statement = claim.statement.replace("|", "\\|")
            lines.append(f"| `{claim.name}` | {statement} | {source} |")
        return self.parse_text_to_nodes("\n".join(lines))

    @staticmethod
    def _linked(part: SourcePart) -> str:
        """Part of a source as a link."""
        if part.equations:
            numbers = ", ".join(f"{{eq}}`{part.page}-{number}`" for number in part.equations)
            return f"{{doc}}`/derivations/{part.page}` {numbers}"
        return f"[{part.text}]({part.address})" if part.address else part.text


def system_rows() -> dict[str, dict[str, Any]]:
    """Rows of `systems/table.toml` by the name of the system."""
    return tomllib.loads((DOCS / "systems" / "table.toml").read_text("utf-8"))


def opening_figure(page: str) -> tuple[str, str] | None:
    """Address and alternative text of the first figure of a system's page; None without one."""
    found = IMAGE.search(page)
    return (found[2], found[1]) if found else None


def first_paper(system: str) -> str:
    """Return the first arXiv number among the references of a system."""
    numbers = (ARXIV.search(reference.bibtex) for reference in load(system).references)
    return next(number[1] for number in numbers if number)


class Systems(SphinxDirective):
    """Table of all systems: figure, question, predicted quantities, kind of theory, paper, time."""

    def run(self) -> list[nodes.Node]:
        """Write the table as MyST, so that names become links."""
        table = DOCS / "systems" / "table.toml"
        self.env.note_dependency(str(table))
        lines = [
            "| figure | system and question | what is predicted | theory | paper | time |",
            "|---|---|---|---|---|---|",
        ]
        for name, row in system_rows().items():
            source = DOCS / "systems" / f"{name}.md"
            self.env.note_dependency(str(source))
            paper = first_paper(name)
            cells = [
                self._thumbnail(name, source.read_text("utf-8")),
                f"[`{name}`]({name}.md) {row['question']}",
                row["predicted"],
                row["theory"],
                f"[arXiv:{paper}](https://arxiv.org/abs/{paper})",
                f"{row['seconds']} s",
            ]
            lines.append(f"| {' | '.join(cells)} |")
        parsed = self.parse_text_to_nodes("\n".join(lines))
        for node in parsed:
            for table_node in node.findall(nodes.table):
                table_node["classes"].append("systems")
        return parsed

    @staticmethod
    def _thumbnail(name: str, page: str) -> str:
        """Small figure that links to the page."""
        figure = opening_figure(page)
        if figure is None:
            return ""
        address, text = figure
        return f"[![{text}]({address})]({name}.md)"


def examples() -> list[tuple[str, str, str]]:
    """Name, title and first paragraph of each example, by title."""
    found = []
    for path in sorted((DOCS.parent / "examples").glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or path.stem
        title, _, body = text.partition("\n")
        paragraph = body.lstrip("=\n").split("\n\n")[0]
        plain = re.sub(r":\w+:`([^`<]*?)(?: <[^`]*>)?`", r"\1", " ".join(paragraph.split()))
        found.append((path.stem, title, plain.split(". ")[0].rstrip(".") + "."))
    return sorted(found, key=lambda example: example[1])


class Notebooks(SphinxDirective):
    """Table of the examples with links to download each as a notebook or script."""

    def run(self) -> list[nodes.Node]:
        """Write the table as MyST; the gallery has written the files when pages are read."""
        lines = ["| example | shows | download |", "|---|---|---|"]
        for name, title, text in examples():
            files = (
                f"{{download}}`notebook <gallery/{name}.ipynb>`, "
                f"{{download}}`script <gallery/{name}.py>`"
            )
            lines.append(f"| [{title}](gallery/{name}) | {text} | {files} |")
        return self.parse_text_to_nodes("\n".join(lines))
