"""Sphinx extension: links from first uses of terms to the glossary; directives of `page_tables`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from docutils import nodes
from page_tables import Claims, Notebooks, Systems, examples
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.nodes import make_refnode

TERMS = """
BBP transition, deflation, effective dimension, finite-size correction, information exponent,
kernel limit, label map, label-weighted moment, lift, noise sensitivity exponent, not testable, outlier,
replicate, RIE, sample ratio, shrinkage, specialisation, spike, state evolution, verdict
"""
"""Terms of the glossary that are our own, or that readers of papers may not know."""

SHORT = 26  # letters of a word of code that fits into a line at 400 px

NAME = 14  # letters of a name that is not broken in a table

UNLINKED = (
    nodes.title,
    nodes.literal,
    nodes.reference,
    nodes.literal_block,
    nodes.math,
    nodes.term,
)


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


def break_code_in_tables(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Let code in tables break after the marks that join its words, and keep a number with its error."""
    if page.startswith("generated/") or app.builder.format != "html":
        return
    for entry in doctree.findall(nodes.entry):
        for text in list(entry.findall(nodes.Text)):
            if " ± " in text and not _inside(text):
                held = text.astext().replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
                text.parent.replace(text, nodes.Text(held))
        for code in list(entry.findall(nodes.literal)):
            if len(code.astext()) <= NAME:
                continue
            parts = re.split(r"(?<=[/_.=,])(?=\w)", code.astext())
            marks: list[nodes.Node] = []
            for part in parts:
                marks += [nodes.Text(part), nodes.raw("", "<wbr>", format="html")]
            if len(parts) > 1:
                code.children = []
                code.extend(marks[:-1])


def wrap_commands(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let a long command continue on an indented line, without a break inside its words."""
    body = context.get("body") or ""
    if 'class="commands ' in body:
        context["body"] = re.sub(
            r'(<div class="commands [^>]*>\s*<div class="highlight"><pre>)(.*?)(</pre>)',
            lambda block: block[1] + _lines(block[2]) + block[3],
            body,
            flags=re.DOTALL,
        )


def _lines(block: str) -> str:
    """Lines of highlighted commands as blocks, and words with dashes as units."""
    # Text outside tags and entities only.
    held = re.sub(
        r"(<[^>]*>|&\w+;)|([^\s<>&]*-[^\s<>&]*)",
        lambda part: part[1] or f'<span class="held">{part[2]}</span>',
        block,
    )
    lines = held.splitlines(True)
    if any(line.count("<span") != line.count("</span>") for line in lines):
        return block  # a quoted text goes over several lines
    return "".join(f'<span class="command">{line}</span>' for line in lines)


def shorten_sidebar(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Leave the pages of single names out of the sidebar; the page API lists them."""
    tree = context.get("furo_navigation_tree")
    if not tree or ("generated/" not in tree and not page.startswith("generated/")):
        return
    soup = BeautifulSoup(tree, "html.parser")
    for link in soup.find_all("a", string="API"):
        for part in link.find_next_siblings():
            part.decompose()
    context["furo_navigation_tree"] = str(soup)


def name_papers_and_pictures(app: Sphinx, doctree: nodes.document) -> None:
    """Enter arXiv numbers and keywords of a page into the index, and name pictures of the gallery."""
    page = app.env.current_document.docname
    if page == "gallery/index":
        titles = {name: title for name, title, _ in examples()}
        for picture in doctree.findall(nodes.image):
            name = re.sub(r"^sphx_glr_|_thumb$", "", Path(picture["uri"]).stem)
            picture["alt"] = picture.get("alt") or titles.get(name, name)
    if page.startswith(("systems/", "derivations/", "papers/")):
        # The offline search skips numbers, but finds entries of the index.
        papers = sorted(set(re.findall(r"arXiv:(\d{4}\.\d{4,5})", doctree.astext())))
        top = next(doctree.findall(nodes.section))
        entries = [("single", f"arXiv:{paper}", top["ids"][0], "main", None) for paper in papers]
        if entries:
            top.insert(1, addnodes.index(entries=entries))
    for place, words in keywords().items():
        name, _, section = place.partition("#")
        if name == page:
            _enter(doctree, section, words)


def keywords() -> dict[str, list[str]]:
    """Words of `keywords.toml` by the page or section that answers them."""
    path = Path(__file__).with_name("keywords.toml")
    found: dict[str, list[str]] = tomllib.loads(path.read_text("utf-8"))["pages"]
    return found


def _enter(doctree: nodes.document, section: str, words: list[str]) -> None:
    """Enter words into the index as main entries of a section, or of the page if none is named."""
    sections = list(doctree.findall(nodes.section))
    places = [node for node in sections if section in (*node["ids"], *_slugs(node))]
    if section and not places:
        raise ExtensionError(f"keywords.toml: {doctree['source']} has no section #{section}")
    place = places[0] if section else sections[0]
    entries = [("single", word, place["ids"][0], "main", None) for word in words]
    place.insert(1, addnodes.index(entries=entries))


def _slugs(node: nodes.section) -> list[str]:
    return [node["slug"]] if "slug" in node else []


def hold_punctuation(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Keep a mark after a formula on its line; short code breaks between its words only."""
    for formula in list(doctree.findall(nodes.math)):
        text = formula.next_node(nodes.Text, descend=False, siblings=True)
        at = formula.parent.index(formula) + 1
        if at < len(formula.parent) and formula.parent[at] is text:
            mark = re.match(r"[.,;:)’]+", text.astext())
            if mark:
                formula["mark"] = mark[0]
                # By its place: `replace` would take the first text that reads the same.
                formula.parent[at] = nodes.Text(text.astext()[mark.end() :])
    for code in doctree.findall(nodes.literal):
        if max(map(len, code.astext().split()), default=0) <= SHORT:
            code["classes"].append("short")
    for block in doctree.findall(nodes.literal_block):
        lines = [line for line in block.astext().splitlines() if line]
        if lines and all(line.startswith(("$ ", "solvable ")) for line in lines):
            block["classes"].append("commands")


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
    """Register the directives and the hook."""
    app.add_directive("claims", Claims)
    app.add_directive("systems", Systems)
    app.add_directive("notebooks", Notebooks)
    app.connect("doctree-read", name_papers_and_pictures)
    app.connect("doctree-resolved", link_first_uses)
    app.connect("doctree-resolved", hold_punctuation)
    app.connect("doctree-resolved", break_code_in_tables)
    app.connect("html-page-context", wrap_commands)
    app.connect("html-page-context", shorten_sidebar, priority=900)  # after the theme's own
    return {"parallel_read_safe": True, "parallel_write_safe": True}
