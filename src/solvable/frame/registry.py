"""Finding systems through the entry-point group ``solvable.systems``.

Listing reads titles from the source text, so that it imports no system and no NumPy.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from solvable.errors import UnknownSystem, unknown_choice

if TYPE_CHECKING:
    from solvable.frame.system import System

GROUP = "solvable.systems"
"""Entry-point group in which a package names its systems."""

UNLISTED = "solvable.commands"
"""Entry-point group of systems that a command of its own runs; their runs are loaded by name."""


@dataclass(frozen=True)
class Listing:
    """A system that an installed package provides."""

    name: str
    """Name on the command line."""
    title: str
    """One line for a reader; empty if the source does not contain it as plain text."""
    package: str
    """Distribution that provides it, with its version."""


def available() -> list[Listing]:
    """List the installed systems by name, without importing them.

    Returns
    -------
    list of Listing
        Sorted by name. The title is read from the source of the system's module; a system whose
        module is missing is listed with that as its title, and :func:`load` says why.

    Examples
    --------
    >>> "sequential-recovery" in [one.name for one in available()]
    True
    """
    return [
        Listing(name, _title(entries[0]), _package(entries[0]))
        for name, entries in sorted(_entries().items())
    ]


def load(name: str) -> System:
    """Import a system by its name.

    Parameters
    ----------
    name : str
        Name of an entry point in the group ``solvable.systems``.

    Returns
    -------
    System
        The instance (an entry point may also name the class).

    Examples
    --------
    >>> load("sequential-recover")
    Traceback (most recent call last):
    ...
    solvable.errors.UnknownSystem: system is 'sequential-recover'; allowed: ...
    """
    found = _entries()
    if name not in found:
        unlisted = _entries(UNLISTED)
        if name in unlisted:
            return _import(unlisted[name][0])
        raise UnknownSystem(
            f"{unknown_choice('system', name, sorted(found))} A system of another package is found "
            f"once that package is installed (pip install PACKAGE) and names it in its entry-point "
            f"group {GROUP!r}."
        )
    entries = found[name]
    if len({entry.value for entry in entries}) > 1:
        packages = ", ".join(_package(entry) for entry in entries)
        raise UnknownSystem(
            f"system {name!r} is provided by more than one package: {packages}. Uninstall one."
        )
    return _import(entries[0])


def _import(entry: EntryPoint) -> System:
    from solvable.frame.system import System

    package = _package(entry)
    try:
        loaded = entry.load()
        if isinstance(loaded, type) and issubclass(loaded, System):
            loaded = loaded()
    except Exception as error:  # a module of another package may raise any exception when imported
        cause = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UnknownSystem(
            f"system {entry.name!r} of package {package} cannot be imported from {entry.value!r} "
            f"({cause}). Reinstall the package with its dependencies."
        ) from error
    if not isinstance(loaded, System):
        raise UnknownSystem(
            f"entry point {entry.name!r} of package {package} is a {type(loaded).__name__}; "
            f"allowed: an instance or subclass of solvable.systems.base.System."
        )
    if loaded.name != entry.name:
        raise UnknownSystem(
            f"entry point {entry.name!r} of package {package} holds a system named "
            f"{loaded.name!r}; the two names must be equal. Correct the package's entry points."
        )
    return loaded


def _entries(group: str = GROUP) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    return found


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "(unknown package)"


def _title(entry: EntryPoint) -> str:
    try:
        spec = importlib.util.find_spec(entry.module)
    except (ImportError, ValueError) as error:
        return f"(cannot be imported: {error})"
    if spec is None:
        return f"(cannot be imported: no module named {entry.module!r})"
    if not (spec.origin and spec.origin.endswith(".py")):
        return ""
    try:
        tree = ast.parse(Path(spec.origin).read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        return f"(cannot be imported: {error})"
    return _title_in(tree, entry.attr)


def _title_in(tree: ast.Module, attribute: str) -> str:
    """Title of a system: ``attribute = System(title=...)``, a class, or an instance of one."""
    value = _assigned(tree.body, attribute)
    if isinstance(value, ast.Call):
        given = next((word.value for word in value.keywords if word.arg == "title"), None)
        if given is not None:
            return _text(given)
        if isinstance(value.func, ast.Name):
            attribute = value.func.id
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return _text(_assigned(classes[attribute].body, "title")) if attribute in classes else ""


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _assigned(body: list[ast.stmt], name: str) -> ast.expr | None:
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    return None
