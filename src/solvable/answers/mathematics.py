"""Formulas as MathML, which browsers draw without a network."""

from __future__ import annotations

import html
import re
from typing import Literal


def mathml(formula: str, display: Literal["inline", "block"]) -> str:
    """Return a LaTeX formula as MathML."""
    from latex2mathml.converter import convert

    # latex2mathml 3.81 does not know \arg, nor sizes of braces and angles.
    formula = re.sub(r"\\arg\b", r"\\operatorname{arg}", formula)
    formula = re.sub(r"\\[Bb]igg?[lrm]?(?=\\(?:[{}]|langle|rangle))", "", formula)
    return str(convert(formula, display=display))


def unknown_commands(written: str) -> list[str]:
    """Return LaTeX commands that :func:`mathml` left as text in its result."""
    return re.findall(r">([^<]*\\[^<]*)<", html.unescape(written))
