"""Names of a package that load on first use, listed in the stub next to its ``__init__``."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

FORMER_NAMES = Path(__file__).with_name("former_names.txt")
"""Lines `solvable.theory.NAME MODULE`: names that version 0.1 exported, with their modules."""


def attach(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Read the imports of ``__init__.pyi``; return ``__getattr__``, ``__dir__`` and ``__all__``.

    The library lazy-loader supports only modules of the package itself, but these packages export names
    of other packages.
    """
    tree = ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8"))
    homes = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def load(name: str) -> Any:
        if name not in homes:
            return former(package, name)
        module, attribute = homes[name]
        return getattr(import_module(module), attribute)

    names = sorted(homes)
    return load, lambda: names, names


def former(package: str, name: str) -> Any:
    """Return a formerly exported name, with a warning that gives its module."""
    rows = (line.split() for line in FORMER_NAMES.read_text("utf-8").splitlines())
    module = dict(rows).get(f"{package}.{name}")
    if module is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    warnings.warn(
        f"{package}.{name} is no longer public, and the next version removes it. For now it is "
        f"{module}.{name}, which may change.",
        FutureWarning,
        stacklevel=3,
    )
    return getattr(import_module(module), name)
