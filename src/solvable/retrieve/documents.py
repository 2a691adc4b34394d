"""Documents to index: rows of a file, docstrings, or the sections of the files of a folder."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from solvable.data.docstring_corpus import docstrings
from solvable.errors import InvalidData, InvalidParameter
from solvable.paths import check_path, printable
from solvable.plots.words import counted
from solvable.retrieve.corpus import Corpus, Pair, check_memory, deduplicated, read_corpus

TEXTS = (".md", ".txt", ".py", ".rst")  # endings of the files of a folder that are read


class Document(NamedTuple):
    """A text with its identity, a title that belongs to each of its passages, and a query if any."""

    identity: str
    text: str
    title: str = ""
    query: str = ""


def open_documents(source: str | Path) -> Corpus[Document]:
    """Read documents by name, from a file of rows, or from a folder."""
    path = check_path(source, "the corpus")
    if path.is_dir():
        return read_folder(path)
    corpus = docstring_pairs() if str(source) == "docstrings" else read_corpus(path, queries=False)
    rows = tuple(Document(one.identity, one.document, "", one.query) for one in corpus.pairs)
    return Corpus(corpus.name, rows, corpus.notes)


def read_folder(folder: Path) -> Corpus[Document]:
    """Read the sections of all text files below a folder; hidden files and folders are left out."""
    paths = sorted(_files(folder))
    if not paths:
        raise InvalidParameter(
            f"{folder} has no file that ends in {', '.join(TEXTS)}; allowed: a folder with at "
            "least one, also in folders below it."
        )
    check_memory(str(folder), 8 * sum(path.stat().st_size for path in paths))
    rows: list[Document] = []
    refused, empty = [], []
    for path in paths:
        name = path.relative_to(folder).as_posix()
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            refused.append(name)
            continue
        if "\0" in text:
            refused.append(name)
            continue
        sections = [
            Document(f"{printable(name)}:{line}", " ".join(printable(body).split()), title)
            for line, title, body in _sections(path, text)
        ]
        held = [section for section in sections if section.text]
        rows += held
        empty += [] if held else [name]
    notes = []
    for names, why in ((refused, "cannot be read as UTF-8 text"), (empty, "without text")):
        if names:
            some = ", ".join(printable(name) for name in names[:3]) + ", ..." * (len(names) > 3)
            notes.append(f"{counted(len(names), 'file')} skipped, {why}: {some}")
    if not rows:
        raise InvalidData(f"{folder} has no text: {'; '.join(notes)}.")
    return Corpus(folder.resolve().name, tuple(rows), tuple(notes))


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not one.startswith((".", "__"))]
        for name in names:
            path = Path(place, name)
            if path.suffix.lower() in TEXTS and not name.startswith(".") and path.is_file():
                yield path


def _sections(path: Path, text: str) -> list[tuple[int, str, str]]:
    """Return the sections of a file: first line, titles of file and section, and text."""
    lines = text.splitlines()
    find = {".md": _headings, ".rst": _headings, ".py": _python}.get(path.suffix.lower())
    headings = find(lines) if find else []
    # Text before the first heading is a section too.
    starts = [(0, 0, ""), *headings, (len(lines), 0, "")]
    page = path.stem
    if path.suffix.lower() != ".py" and headings:
        page = headings[0][2]
    found = []
    for (start, skipped, title), (end, _, _) in pairwise(starts):
        whole = page if title in ("", page) else f"{page}: {title}"
        found.append((start + 1, printable(whole)[:200], "\n".join(lines[start + skipped : end])))
    return found


def _headings(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the headings: their line, the number of lines that they take, and their text."""
    found, fence = [], ""
    for number, (line, below) in enumerate(pairwise([*lines, ""])):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and (not fence or (mark[1].startswith(fence) and not line.strip(" `~"))):
            fence = "" if fence else mark[1]
        heading = None if fence else re.match(r"#{1,6}\s+(.+?)[\s#]*$", line)
        bar = below.rstrip()
        if heading:
            found.append((number, 1, heading[1]))
        elif not fence and line[:1].isalnum() and re.fullmatch(r"([=\-`'\"~^*+])\1{2,}", bar):
            # underlined, as in reStructuredText
            found += [(number, 2, line.strip())] if len(bar) >= len(line.rstrip()) else []
    return found


def _python(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return functions and classes at module level, titled by their name; none in broken code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the text of others
            body = ast.parse("\n".join(lines)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            found.append((first - 1, 0, node.name))
    return found


PACKAGES = ("numpy", "scipy", "sympy", "networkx", "torch", "pandas", "sklearn")
"""Packages whose docstrings are the corpus ``docstrings``, if they are installed."""

HELD_OUT = {"docstrings": ("pandas", "sklearn")}
"""Domains of named corpora that are not trained on, so that they test transfer."""

_ROLES = re.compile(r":[\w:+-]+:`~?([^`<]*?)(?:\s*<[^>]*>)?`")
_MARKS = re.compile(r"[`*|]{1,3}([^`*|\n]+)[`*|]{1,3}")
_LINES = re.compile(r"^\s*(?:[-=~^]{3,}|\.\. .*|>>>.*)\s*$", re.MULTILINE)
_END = re.compile(r"^\s*(?:Examples?|References|See Also)\s*:?\s*$", re.MULTILINE)


def open_corpus(source: str | Path) -> Corpus[Pair]:
    """Read a corpus for training, without near duplicates."""
    if str(source) == "docstrings":
        return deduplicated(docstring_pairs())
    return deduplicated(read_corpus(source))


def docstring_pairs(packages: tuple[str, ...] = PACKAGES) -> Corpus[Pair]:
    """Return pairs of the first paragraph and the rest of docstrings; domains are packages."""
    installed = [name for name in packages if find_spec(name) is not None]
    pairs = []
    for record in docstrings(installed, shortest=60):
        query = plain_words(record.first_line)
        words = plain_words(_END.split(record.body, maxsplit=1)[0]).split()
        signature = re.match(r"[\w.]+\s*\(", query)
        if 4 <= len(query.split()) <= 30 and len(words) >= 20 and not signature:
            identity = f"{record.module}.{record.name}"
            pairs.append(Pair(identity, query, " ".join(words[:150]), record.package))
    # Overloads and conditional definitions share a name.
    pairs = list({pair.identity: pair for pair in pairs}.values())
    return Corpus("docstrings", tuple(pairs), (f"docstrings of {', '.join(installed)}",))


def plain_words(text: str) -> str:
    """Return a text of reStructuredText without its markup, on one line."""
    text = _MARKS.sub(r"\1", _ROLES.sub(r"\1", _LINES.sub("", text)))
    return " ".join(printable(text).split())
