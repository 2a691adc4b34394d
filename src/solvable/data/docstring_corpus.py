"""Docstrings of installed packages as a text corpus, read from source files and never imported."""

from __future__ import annotations

import ast
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidData, InvalidParameter, quoted, unknown_choice

SCIENTIFIC = ("numpy", "scipy", "sklearn")
"""Packages that `docstrings` reads by default; all are dependencies of this library."""

SKIPPED_FOLDERS = frozenset({"tests", "test", "externals", "vendored", "__pycache__"})
"""Folders of tests, and of code of other packages."""

Kind = Literal["module", "class", "function"]
Unit = Literal["character", "word"]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Docstring:
    """Docstring of a module, class or function."""

    package: str  # name of the package, such as "numpy"
    module: str  # name of the module, such as "numpy.linalg._linalg"
    name: str  # name within the module; the name of the module for its own docstring
    kind: Kind  # what is documented; methods are functions
    text: str  # the docstring without indentation

    @property
    def first_line(self) -> str:
        """First paragraph on one line, such as a query for the body."""
        return " ".join(self.text.split("\n\n", 1)[0].split())

    @property
    def body(self) -> str:
        """Text after the first paragraph; empty if there is none."""
        return self.text.partition("\n\n")[2].strip()


def docstrings(
    packages: str | Sequence[str] = SCIENTIFIC, *, shortest: int = 1, private: bool = True
) -> list[Docstring]:
    """Read the docstrings of installed packages from their source files.

    Files are parsed, and no code of the packages is executed. The order is that of the packages, the
    sorted paths of their files and the lines of each file. A text that occurs several times is kept once.
    Folders of tests and files that Python cannot parse are left out.

    Parameters
    ----------
    packages : str or sequence of str
        Name under which a package is imported, without dots, or several names.
    shortest : int
        Smallest number of characters of a text.
    private : bool
        Whether names that begin with an underscore are included; private modules always are.

    Returns
    -------
    list of Docstring
        Docstrings with different texts.

    Raises
    ------
    InvalidParameter
        If a package is not installed or has no source files.

    Notes
    -----
    Backed by ``tests/data/test_docstring_corpus.py``.

    Examples
    --------
    >>> found = docstrings(["numpy"], shortest=200)
    >>> len(found) > 500, len({record.text for record in found}) == len(found)
    (True, True)
    """
    check_integer("shortest", shortest, 1)
    if isinstance(packages, str):
        packages = [packages]
    if not np.iterable(packages):
        raise InvalidParameter(f"packages is {quoted(packages)}; allowed: names of packages.")
    records: dict[str, Docstring] = {}
    for package in packages:
        root = _folder_of(package)
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if SKIPPED_FOLDERS.intersection(parts):
                continue
            module = ".".join((package, *parts)).removesuffix(".__init__")
            for record in _documented(path, package, module):
                shown = private or not any(p.startswith("_") for p in record.name.split("."))
                if len(record.text) >= shortest and (shown or record.kind == "module"):
                    records.setdefault(record.text, record)
    return list(records.values())


def _folder_of(package: str) -> Path:
    """Return the folder of a package; a name without dots is located without importing anything."""
    spec, fault = None, "is no name without dots"
    if isinstance(package, str) and package.isidentifier():
        with suppress(ValueError):  # a module without an origin, such as __main__
            spec = find_spec(package)
        fault = f"is not installed (pip install {package})"
        if spec is not None or package in sys.modules:
            fault = "is built into Python or is a single file"
    if spec is None or not spec.submodule_search_locations:
        raise InvalidParameter(
            f"package {quoted(package)} {fault}; allowed: installed packages that are folders, such as "
            "numpy."
        )
    return Path(spec.submodule_search_locations[0])


def _documented(path: Path, package: str, module: str) -> Iterator[Docstring]:
    """Docstrings of a file in the order of its lines."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # invalid escapes in the file
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    open_nodes: list[tuple[str, ast.AST]] = [("", tree)]
    while open_nodes:
        name, node = open_nodes.pop()
        if isinstance(node, DOCUMENTED) and (text := (ast.get_docstring(node) or "").strip()):
            kind: Kind = "class" if isinstance(node, ast.ClassDef) else "function"
            kind = "module" if isinstance(node, ast.Module) else kind
            yield Docstring(package, module, name or module, kind, text)
        children = [
            (
                f"{name}.{child.name}".lstrip(".") if isinstance(child, DOCUMENTED[1:]) else name,
                child,
            )
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt | ast.ExceptHandler)
        ]
        open_nodes += reversed(children)


def tokens_of(
    texts: Sequence[str], vocabulary: int, *, unit: Unit = "character"
) -> tuple[np.ndarray, list[str]]:
    """Turn texts into one sequence of integers, for :func:`~solvable.data.token_correlations`.

    The texts are converted to lower case. Characters are all characters, with any white space as one
    blank; words are runs of letters. The most frequent ones get the numbers 0, 1, ... in this order, and
    all others the last number.

    Parameters
    ----------
    texts : sequence of str
        Texts.
    vocabulary : int
        Number V of different tokens, at least 2.
    unit : {"character", "word"}
        Kind of the tokens.

    Returns
    -------
    tokens : ndarray of shape (n,)
        Numbers from 0 to V - 1, with -1 between two texts.
    names : list of str
        Name of each token; the last is "other".

    Raises
    ------
    InvalidData
        If the texts are not a sequence of strings, or have fewer than V - 1 different tokens.
    InvalidParameter
        If the vocabulary or the unit is not allowed.

    Notes
    -----
    Backed by ``tests/data/test_docstring_corpus.py``.

    Examples
    --------
    >>> tokens, names = tokens_of(["abba", "a!"], 3)
    >>> tokens.tolist(), names
    ([0, 1, 1, 0, -1, 0, 2], ['a', 'b', 'other'])
    """
    check_integer("vocabulary", vocabulary, 2)
    if unit not in get_args(Unit):
        raise InvalidParameter(unknown_choice("unit", unit, get_args(Unit)))
    if isinstance(texts, str) or not np.iterable(texts):
        raise InvalidData(
            f"texts is {quoted(texts)}; allowed: a sequence of strings, such as a list of one."
        )
    for text in (texts := list(texts)):
        if not isinstance(text, str):
            raise InvalidData(f"a text is {quoted(text)}; allowed: strings.")
    split = [_pieces(text.lower(), unit) for text in texts]
    counts = Counter(piece for pieces in split for piece in pieces)
    if len(counts) < vocabulary - 1:
        raise InvalidData(
            f"the texts have {len(counts)} different token{'s' * (len(counts) != 1)}; allowed: at "
            f"least vocabulary - 1 = {vocabulary - 1}. Lower vocabulary."
        )
    names = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    number = {name: k for k, name in enumerate(names[: vocabulary - 1])}
    rows: list[list[int]] = []
    for pieces in split:
        rows += [[-1], [number.get(piece, vocabulary - 1) for piece in pieces]]
    return np.concatenate(rows[1:]).astype(np.int64), [*names[: vocabulary - 1], "other"]


def _pieces(text: str, unit: str) -> list[str]:
    """Split a text into characters or words."""
    if unit == "character":
        return list(" ".join(text.split()))
    letters = "".join(character if character.isalpha() else " " for character in text)
    return letters.split()
