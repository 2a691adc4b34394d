"""Sphinx extension: tables of claims, and links from the first use of a term to the glossary."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from solvable.frame.registry import load
from solvable.frame.sources import SourcePart, source_parts

TERMS = """
BBP transition, deflation, effective dimension, finite-size correction, information exponent,
kernel limit, label map, label-weighted moment, lift, noise sensitivity exponent, not testable, outlier,
replicate, RIE, sample ratio, shrinkage, specialisation, spike, state evolution, verdict
"""
"""Terms of the glossary that are our own, or that readers of papers may not know."""

UNLINKED = (
    nodes.title,
    nodes.literal,
    nodes.reference,
    nodes.literal_block,
    nodes.math,
    nodes.term,
)


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


def link_first_uses(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Link the first use of each term on a page to the glossary."""
    if page in {"glossary", "index"} or page.startswith(("generated/", "gallery/")):
        return
    for term in " ".join(TERMS.split()).split(", "):
        words = re.compile(rf"(?<![\w-]){re.escape(term)}(?:s|es)?(?![\w-])")
        for text in list(doctree.findall(nodes.Text)):
            match = words.search(text.astext())
            if match and not _inside(text):
                _link(app, page, text, match, term)
                break


def _inside(node: nodes.Node | None) -> bool:
    """Return True within titles, code, formulas and links."""
    while node is not None:
        if isinstance(node, UNLINKED):
            return True
        node = node.parent
    return False


def _link(app: Sphinx, page: str, text: nodes.Text, match: re.Match[str], term: str) -> None:
    """Replace the matched words of a text by a link to the glossary."""
    whole = text.astext()
    label = "term-" + re.sub(r"[^\w]+", "-", term)
    words = nodes.inline("", match[0], classes=["term"])
    reference = make_refnode(app.builder, page, "glossary", label, words)
    parts = [nodes.Text(whole[: match.start()]), reference, nodes.Text(whole[match.end() :])]
    text.parent.replace(text, [part for part in parts if part.astext()])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the hook."""
    app.add_directive("claims", Claims)
    app.connect("doctree-resolved", link_first_uses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
