"""Sphinx configuration."""

import re
import sys
from importlib.metadata import version as package_version
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from solvable.answers import mathematics

sys.path.insert(0, str(Path(__file__).parent))

project = "solvable"
author = "The solvable developers"
copyright = "2026, the solvable developers"
release = package_version("solvable")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "page_tools",
    "narrow_figures",
    "paper_tools",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = [
    "_build",
    "_templates",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/*.py.md5",
    "gallery/*.json",
]

autosummary_generate = True
templates_path = ["_templates"]  # a page for each public package, with the names that it exports
numpydoc_show_class_members = False
autodoc_typehints = "none"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # a page of times, which loads scripts from a network
    "remove_config_comments": True,
}

# The sidebar shows all groups; pydata-sphinx-theme hides two of seven under "More" at 1280 px.
html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_search_scorer = str(Path(__file__).with_name("search_order.js"))  # single names last
html_title = "solvable"
suppress_warnings = ["config.cache"]


def skip_foreign_members(app, what, name, obj, skip, options):
    """Leave out aliases such as ``Metrics``, and what scikit-learn adds to each estimator."""
    import types
    import typing

    alias = isinstance(obj, types.GenericAlias | types.UnionType) or typing.get_origin(obj)
    added = re.fullmatch(r"(set_\w+_request|get_metadata_routing)", name)
    return True if alias or added else None


def mathml(node, display):
    """A formula as MathML; warn of commands that become text."""
    formula = mathematics.mathml(node.astext(), display)
    unknown = mathematics.unknown_commands(formula)
    if unknown:
        text = f"latex2mathml does not know {', '.join(unknown)} in {node.astext()!r}"
        logging.getLogger(__name__).warning(text, location=node)
    return formula


def visit_math(self, node):
    """Write a formula in a line."""
    formula, mark = mathml(node, "inline"), node.get("mark", "")
    if len(node.astext()) > 35:  # may be wider than a phone
        formula = f'<span class="long-formula">{formula}</span>'
    self.body.append(f'<span class="held">{formula}{mark}</span>' if mark else formula)
    raise nodes.SkipNode


def visit_displayed(self, node):
    """Write a formula of its own, with its number if it has one."""
    wide = "overflow-x: auto"  # a long one scrolls, not the page
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight", STYLE=wide))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})</span>')
    self.body.append(mathml(node, "block") + "</div>\n")
    raise nodes.SkipNode


def link_within_pages(app, path, page, content):
    """Keep the words of links from files of the repository to files that are no pages."""
    if path.name in {"CONTRIBUTING.md", "CHANGELOG.md"}:
        content[0] = re.sub(r"\[([^]]+)\]\((?!https?:|docs/|#)[^)\s]+\)", r"\1", content[0])


def setup(app):
    """Register the hooks above."""
    app.connect("autodoc-skip-member", skip_foreign_members)
    app.connect("include-read", link_within_pages)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed, None))
