"""Names of a package that load on first use, listed in the stub next to its ``__init__``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


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
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = homes[name]
        return getattr(import_module(module), attribute)

    names = sorted(homes)
    return load, lambda: names, names
