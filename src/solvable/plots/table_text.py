"""Tables as LaTeX and Markdown, with every text escaped."""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import NamedTuple

from solvable.plots.tables import Table

_SUPERSCRIPTS, _SUBSCRIPTS = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "₋₀₁₂₃₄₅₆₇₈₉"
_PLAIN = str.maketrans(_SUPERSCRIPTS + _SUBSCRIPTS, 2 * "-0123456789")

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # \textquotedbl is unknown to pdflatex without the package fontenc
    '"': r"\char34{}",
    # braces keep "?`" and "''" from being joined into one sign
    "`": "{`}",
    "'": "{'}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "‘": "{`}",
    "’": "{'}",
    "“": "``",
    "”": "''",
    "\xa0": "~",
    "\n": " ",
    "\t": " ",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
"""LaTeX of characters of a text."""

_FORMULAS = {
    "±": r"\pm", "×": r"\times", "−": "-", "∞": r"\infty", "≤": r"\leq", "≥": r"\geq",
    "·": r"\cdot", "√": r"\sqrt{}", "→": r"\to", "←": r"\leftarrow", "↦": r"\mapsto",
    "⇒": r"\Rightarrow", "≠": r"\neq", "≈": r"\approx", "∼": r"\sim", "≪": r"\ll", "≫": r"\gg",
    "∝": r"\propto", "∈": r"\in", "∑": r"\sum", "∫": r"\int", "∂": r"\partial", "∇": r"\nabla",
    "ℓ": r"\ell", "⊗": r"\otimes", "‖": r"\|", "⟨": r"\langle", "⟩": r"\rangle", "°": r"^{\circ}",
    "µ": r"\mu", "½": r"\frac{1}{2}",
}  # fmt: skip
"""LaTeX of characters that stand in a formula, without dollars."""

_NEEDS_FONTENC = "ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ"
"""Latin letters that pdflatex does not know without the package fontenc."""


def to_latex(table: Table) -> str:
    r"""Return a ``tabular`` with rules of the package ``booktabs``, for any LaTeX engine."""
    sides = "".join("r" if column.right else "l" for column in table.columns)
    head = [_latex(column.name) for column in table.columns]
    rows = [[_latex(cell.text) for cell in cells] for cells, _ in table.rows]
    body = [" & ".join(cells) + r" \\" for cells in rows]
    lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", " & ".join(head) + r" \\", r"\midrule"]
    return "\n".join([*lines, *body, r"\bottomrule", r"\end{tabular}", ""])


def _latex(text: str) -> str:
    """Escape a text; neighbouring signs of formulas, and a run of superscripts, are one formula."""
    parts = re.findall(f"[{_SUPERSCRIPTS}]+|[{_SUBSCRIPTS}]+|--+|.", text, re.DOTALL)
    runs = groupby(map(_piece, parts), key=lambda piece: piece.formula)
    shown = "".join(
        f"${' '.join(piece.text for piece in run)}$"
        if formula
        else "".join(piece.text for piece in run)
        for formula, run in runs
    )
    # after a line break, LaTeX would read "[" or "*" as its argument
    return rf"\relax{{}}{shown}" if shown.lstrip().startswith(("[", "*")) else shown


class _Piece(NamedTuple):
    text: str
    formula: bool = False


def _piece(part: str) -> _Piece:
    """Return LaTeX of a sign or a run of them; the code point of one that pdflatex does not know."""
    if part[0] in _SUPERSCRIPTS + _SUBSCRIPTS:
        return _Piece(
            f"{'^' if part[0] in _SUPERSCRIPTS else '_'}{{{part.translate(_PLAIN)}}}", True
        )
    if part.startswith("--"):
        return _Piece("{}".join(part))  # no dash: flags of commands begin with it
    if part in _FORMULAS:
        return _Piece(_FORMULAS[part], True)
    if part in _LATEX:
        return _Piece(_LATEX[part])
    greek = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(part, ""))
    if greek:
        return _greek(greek[2].lower(), capital=greek[1] == "CAPITAL")
    accented = "\xc0" <= part <= "\u017f" and part not in _NEEDS_FONTENC
    return _Piece(part if " " <= part <= "~" or accented else f"[U+{ord(part):04X}]")


def _greek(name: str, *, capital: bool) -> _Piece:
    letter = "lambda" if name == "lamda" else name
    alike = {  # capitals that are Latin letters have no command
        "alpha": "A", "beta": "B", "epsilon": "E", "zeta": "Z", "eta": "H", "iota": "I", "kappa": "K",
        "mu": "M", "nu": "N", "omicron": "O", "rho": "P", "tau": "T", "chi": "X",
    }  # fmt: skip
    if capital and letter in alike:
        return _Piece(alike[letter])
    if letter == "omicron":
        return _Piece("o", True)
    return _Piece(f"\\{letter.capitalize() if capital else letter}", True)


def to_markdown(table: Table) -> str:
    """Return a table of GitHub's Markdown, which pandoc, Jupyter and MyST read too."""
    head = [_markdown(column.name) for column in table.columns]
    rule = ["---:" if column.right else ":---" for column in table.columns]
    rows = [[_markdown(cell.text) for cell in cells] for cells, _ in table.rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *rows))


def _markdown(text: str) -> str:
    # an entity, because some readers split cells at "|" even after a backslash
    text = re.sub(r"([\\`*_{}\[\]$~#])", r"\\\1", text)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;")):
        text = text.replace(character, entity)
    return " ".join(text.split("\n")).strip()
