"""Find words and notations of the old style in docstrings, comments, messages and pages.

`python tests/support/plain_english.py PATH ...` lists them, each with what to write.
"""

from __future__ import annotations

import ast
import io
import math
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

RULES = {
    r"\b(?:told|tells?|telling)\b": "name the quantity: estimates, shows, prints, distinguishes",
    r"\bbeside\b": "next to; in addition to; besides",
    r"\balike\b": "the same way; similar",
    r"\banew\b": "again",
    r"\bdear(?:er|est)?\b": "slow; expensive",
    r"\bof no account\b": "ignored",
    r"\blikest\b": "closest; most similar",
    r"\bmend(?:s|ed|ing)?\b": "fix; correct",
    r"\b(?:looks?|lasts?) as if\b": "say what was measured",
    r"\bits kin\b": "name the others",
    r"\bwhence\b": "from which",
    r"\bthe note\b|\bnotes? (?:eqs?\b|section|\d)": "cite the paper's equation or docs/derivations",
    r"(?<![\w.\])}*/:])\.\d": "write a leading zero: 0.5",
    r"\b[A-Za-zλκσ]\^[2-9]\b(?![/^(]|\.\d)": "write n/d², not n/d^2",
}
SEEDS = (
    *("told", "tell", "beside", "alike", "anew", "dear", "no account", "likest", "mend", "as if"),
    *("its ki", "whence", "note", "^", *(f".{digit}" for digit in range(10))),
)
"""Texts of which every match of a rule contains one; most pieces of prose contain none."""
HEADLESS = re.compile(r"(?:What|Whether)\b(?![^.]*\?)")
CODE = re.compile(r"``[^`]*``|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|:math:`[^`]*`|https?://\S+", re.DOTALL)


def python_prose(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, kind and text of each docstring, comment and string of several words."""
    docstrings, strings = set(), []
    for node in ast.walk(ast.parse(text)):  # parents come before their parts
        if isinstance(node, ast.JoinedStr):
            strings.append(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            strings.append(node)
            spaced = isinstance(node.value, str) and " " in node.value.strip()
            if spaced and id(node) not in docstrings:
                yield node.lineno, "string", node.value
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            text_alone = isinstance(statement, ast.Expr) and isinstance(value, ast.Constant)
            if text_alone and isinstance(value.value, str):
                docstrings.add(id(value))
                yield value.lineno, "docstring", value.value
    for line, comment in comments(text, strings):
        yield line, "comment", comment.lstrip("# ")


def comments(text: str, strings: list[ast.expr]) -> list[tuple[int, str]]:
    """Line and text of each comment, found five times as fast as by tokens from the strings' places."""
    lines = text.encode().split(b"\n")
    covered: dict[int, list[tuple[int, float]]] = {
        number: [] for number, line in enumerate(lines, 1) if b"#" in line
    }
    for node in strings:
        first, last = node.lineno, node.end_lineno or node.lineno
        for number in range(first, last + 1):
            if number not in covered:
                continue
            opening = lines[first - 1][node.col_offset :].lstrip(b"rbfuRBFU")
            if first < last and not opening.startswith((b'"""', b"'''")):
                # A comment may stand between the parts of a string.
                tokens = tokenize.generate_tokens(io.StringIO(text).readline)
                return [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]
            start = node.col_offset if number == first else 0
            end = node.end_col_offset if number == last else math.inf
            covered[number].append((start, end or 0))
    found = []
    for number, spans in covered.items():
        line = lines[number - 1]
        place = line.find(b"#")
        while place >= 0 and any(start <= place < end for start, end in spans):
            place = line.find(b"#", place + 1)
        if place >= 0:
            found.append((number, line[place:].decode()))
    return found


def page_prose(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, kind and text of each line of a page, without blocks of code and formulas."""
    fenced = formula = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", ":::")):
            fenced = not fenced
        elif line.strip().startswith("$$") and line.count("$$") == 1:
            formula = not formula
        elif not fenced and not formula:
            yield number, "page", line


def without_code(text: str, kind: str) -> str:
    """Blank out code, formulas, doctests and addresses; line breaks stay."""
    if kind == "docstring":
        lines, doctest, formula = [], False, None
        for line in text.split("\n"):
            indent = len(line) - len(line.lstrip())
            doctest = line.lstrip().startswith((">>>", "...")) or (doctest and bool(line.strip()))
            if formula is not None and line.strip() and indent <= formula:
                formula = None
            block = doctest or formula is not None or ".. math:: " in line
            lines.append("" if block else line)
            if line.rstrip().endswith("::") or ".. math:: " in line:
                formula = indent
        text = "\n".join(lines)
    return CODE.sub(lambda code: re.sub(r"[^\n]", "_", code[0]), text)


def findings(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, matched words and remedy of each finding in a Python file or a page."""
    text = path.read_text("utf-8")
    pieces = page_prose if path.suffix == ".md" else python_prose
    for start, kind, prose in pieces(text):
        if kind == "docstring" and HEADLESS.match(prose.lstrip()):
            yield start, prose.lstrip().split("\n")[0], 'start with a verb: "Return ...", "Compute"'
        lower = prose.lower()
        if not any(seed in lower for seed in SEEDS):
            continue
        plain = without_code(prose, kind)
        for pattern, remedy in RULES.items():
            if "0.5" in remedy and kind == "string":
                continue
            for match in re.finditer(pattern, plain, re.IGNORECASE if "d²" not in remedy else 0):
                line = start + plain[: match.start()].count("\n")
                yield line, match[0], remedy


def files(arguments: list[str]) -> Iterator[Path]:
    """Python files and pages among or below the arguments."""
    for argument in map(Path, arguments):
        below = sorted(argument.rglob("*")) if argument.is_dir() else [argument]
        yield from (path for path in below if path.suffix in {".py", ".pyi", ".md"})


def main(arguments: list[str]) -> int:
    """Print every finding; 1 if there is one."""
    found = [(path, *finding) for path in files(arguments) for finding in findings(path)]
    for path, line, words, remedy in found:
        print(f"{path}:{line}: {words!r}: {remedy}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
