"""The shape of the source: no import circle, no import to dodge one, files that a person can read."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest

import solvable

SOURCE = Path(solvable.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {
    ".".join(("solvable", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in FILES
}
LIGHT = ("cli", "verbs.py", "__init__.py", "__main__.py", "frame/registry.py")
"""Parts whose imports wait until they are needed: help and the list of systems load no NumPy."""


def imported(module: str) -> set[str]:
    """Modules of the library that a module imports, anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    # A package of which a part is imported is no dependency of its own.
    parts = {name.rpartition(".")[0] for name in found & MODULES.keys()}
    return (found & MODULES.keys()) - {module, *parts, "solvable"}


def test_there_is_no_import_circle():
    # Kahn: modules whose imports are all placed can be placed.
    waiting = {module: imported(module) for module in MODULES}
    while ready := {module for module, needs in waiting.items() if not needs & waiting.keys()}:
        for module in ready:
            del waiting[module]
    assert waiting == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_own_modules_are_imported_at_the_top(path):
    place = path.relative_to(SOURCE)
    if {place.parts[0], place.as_posix()} & set(LIGHT):
        pytest.skip("imports wait until they are needed")
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(function, ast.FunctionDef):
            own = [
                node.module
                for node in ast.walk(function)
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("solvable")
            ]
            assert own == [], function.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_short(path):
    assert len(path.read_text("utf-8").splitlines()) <= 450


def test_comments_stand_beside_the_code():
    comments = lines = 0
    for path in FILES:
        text = path.read_text("utf-8")
        held = {
            token.start[0]: token.type
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.STRING)
        }
        lines += len(held)
        comments += sum(
            token.type == tokenize.COMMENT
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
        )
    assert comments >= 0.02 * lines


def test_families_have_the_same_file_names():
    # A family of several systems has a folder for each, and beside them what they share.
    for family in {path.parent for path in (SOURCE / "models").rglob("system.py")}:
        names = {path.stem for path in family.glob("*.py")}
        assert {"parameters", "measure", "predict", "claims", "figures", "system"} <= names, family
