"""Sphinx configuration."""

from importlib.metadata import version as package_version

project = "solvable"
author = "The solvable developers"
copyright = "2026, the solvable developers"
release = package_version("solvable")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = [
    "_build",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/*.py.md5",
    "gallery/*.json",
]

autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "none"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py",
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
}

html_theme = "alabaster"
html_title = "solvable"
html_theme_options = {
    "description": "Solvable models of feature learning",
    "fixed_sidebar": True,
    "page_width": "1080px",
}
suppress_warnings = ["config.cache"]


def skip_type_aliases(app, what, name, obj, skip, options):
    """Leave out aliases such as ``Metrics``, which autosummary takes for classes."""
    import types
    import typing

    alias = isinstance(obj, types.GenericAlias | types.UnionType) or typing.get_origin(obj)
    return True if alias else None


def setup(app):
    """Register the hook above."""
    app.connect("autodoc-skip-member", skip_type_aliases)
