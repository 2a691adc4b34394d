"""Tables as LaTeX and Markdown, with every text escaped."""

from __future__ import annotations

import re
import unicodedata

from solvable.plots.tables import Table

_SUPERSCRIPTS = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
_PLAIN = str.maketrans(_SUPERSCRIPTS, "-0123456789")

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "\n": " ",
    "\t": " ",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{
        character: f"${command}$"
        for character, command in {
            "±": r"\pm", "×": r"\times", "−": "-", "∞": r"\infty", "≤": r"\leq", "≥": r"\geq",
            "·": r"\cdot", "√": r"\sqrt{}", "→": r"\to", "≠": r"\neq", "≈": r"\approx",
        }.items()
    },
}  # fmt: skip


def to_latex(table: Table) -> str:
    r"""Return a ``tabular`` with rules of the package ``booktabs``, for any LaTeX engine."""
    sides = "".join("r" if column.right else "l" for column in table.columns)
    head = [_latex(column.name) for column in table.columns]
    rows = [[_latex(cell.text) for cell in cells] for cells, _ in table.rows]
    body = [" & ".join(cells) + r" \\" for cells in rows]
    lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", " & ".join(head) + r" \\", r"\midrule"]
    return "\n".join([*lines, *body, r"\bottomrule", r"\end{tabular}", ""])


def _latex(text: str) -> str:
    # a run of superscripts is one exponent
    parts = re.split(f"([{_SUPERSCRIPTS}]+)", text)
    shown = "".join(
        f"$^{{{part.translate(_PLAIN)}}}$" if place % 2 else "".join(map(_letter, part))
        for place, part in enumerate(parts)
    )
    # two formulas side by side: "$\pm$$-$1"
    shown = shown.replace("$$", "")
    # after a line break, LaTeX would read "[" or "*" as its argument
    return rf"\relax{{}}{shown}" if shown.lstrip().startswith(("[", "*")) else shown


def _letter(character: str) -> str:
    """Return LaTeX of one character; the code point of one that pdflatex does not know."""
    if character in _LATEX:
        return _LATEX[character]
    name = unicodedata.name(character, "")
    greek = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", name)
    if greek:
        return _greek(greek[2].lower(), capital=greek[1] == "CAPITAL")
    # pdflatex knows the Latin letters with accents of these blocks
    known = " " <= character <= "~" or "\xc0" <= character <= "\u017f"
    return character if known else f"[U+{ord(character):04X}]"


def _greek(name: str, *, capital: bool) -> str:
    letter = {"lamda": "lambda", "final sigma": "varsigma"}.get(name, name)
    alike = {  # capitals that are Latin letters have no command
        "alpha": "A", "beta": "B", "epsilon": "E", "zeta": "Z", "eta": "H", "iota": "I", "kappa": "K",
        "mu": "M", "nu": "N", "omicron": "O", "rho": "P", "tau": "T", "chi": "X",
    }  # fmt: skip
    if letter == "omicron":
        return "O" if capital else "$o$"
    if capital:
        return alike[letter] if letter in alike else f"$\\{letter.capitalize()}$"
    return f"$\\{letter}$"


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
