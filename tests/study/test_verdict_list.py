from __future__ import annotations

import re

import matplotlib.mathtext
import pytest

from solvable.frame.claims import Verdict
from solvable.plots.table_text import to_latex, to_markdown
from solvable.plots.tables import Column, Table
from solvable.study.verdict_list import Verdicts

ROWS = [
    Verdict("test-error", "The error.", "holds", 0.93127, 0.0123, 0.94, 0.05, replicates=3),
    Verdict("count_of|odd & ends", "A $ sign.", "fails", 1.2e-7, 3e-9, 2e-7, 1e-8, kind="at most"),
    Verdict("open", "Unknown.", "not testable", reason="too noisy"),
]


def test_verdicts_are_a_list():
    found = Verdicts(ROWS)
    assert found == ROWS
    assert (len(found), found[0], found[1:]) == (3, ROWS[0], ROWS[1:])
    assert [row.claim for row in found] == [row.claim for row in ROWS]
    assert repr(Verdicts()) == "[]"


def test_numbers_are_rounded_by_their_errors_in_every_format():
    found = Verdicts(ROWS)
    assert "0.931 ± 0.012" in repr(found)
    assert "0.931 ± 0.012" in found._repr_html_()
    assert "0.931 ± 0.012" in found.to_markdown()
    assert r"0.931 $\pm$ 0.012" in found.to_latex()
    assert r"$\times$ 10$^{-7}$" in found.to_latex()
    assert "would notice" in found.to_markdown(details=True)


def test_a_data_frame_has_every_field():
    frame = Verdicts(ROWS).to_dataframe()
    assert list(frame.outcome) == ["holds", "fails", "not testable"]
    assert frame.measured[0] == pytest.approx(0.93127)
    assert {"standard_error", "tolerance", "reason", "source", "replicates"} <= set(frame.columns)


def test_latex_of_hostile_text_is_balanced_and_its_formulas_parse():
    text = 'a\\b {c} $x$ 5% #1 _u ^2 ~ <i> | " é λ Ω Α ∞ ≤ − ±− 10⁻¹² 漢 \x1b[2J'
    table = Table.of("claim", Column("n", right=True), rows=[(text, "[1]"), ("*", "")])
    made = to_latex(table)
    assert made.count(r"\\") == 3  # one head and two rows: no other line ends
    for line in made.splitlines()[2:-2]:
        assert len(re.findall(r"(?<!\\)&", line)) in (0, 1)
        bare = re.sub(r"\\[{}$&%#_]", "", line)
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        assert not re.search(r"[#%]", bare)
        for formula in re.findall(r"\$([^$]+)\$", bare):
            matplotlib.mathtext.MathTextParser("path").parse(f"${formula}$".replace("sqrt{}", "pm"))
    assert "[U+6F22]" in made
    assert "\x1b" not in made
    assert r"\relax{}[1]" in made


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # a dollar next to a formula
        ("$±1", r"\$$\pm$1"),
        ("±−∞", r"$\pm - \infty$"),
        # flags are no dashes
        ("--set n", r"-{}-set n"),
        ('"it’s"', r"\char34{}it{'}s\char34{}"),
        ("λ² x₁", r"$\lambda ^{2}$ x$_{1}$"),
        ("d → 20°", r"d $\to$ 20$^{\circ}$"),
        # pdflatex knows the first letter without the package fontenc, but not the second
        ("éđ", "é[U+0111]"),
    ],
)
def test_latex_that_pdflatex_accepts_without_packages(text, shown):
    """Backed by a run of pdflatex over all Latin and Greek letters, in the encodings OT1 and T1."""
    row = to_latex(Table.of("claim", rows=[(text,)])).splitlines()[4]
    assert row == rf"{shown} \\"


def test_markdown_cells_stay_cells():
    table = Table.of("claim", Column("n", right=True), rows=[("a|b\\|c <b>\nd", "*1*")])
    head, rule, row = to_markdown(table).splitlines()
    assert rule == "| :--- | ---: |"
    assert row.count("|") == head.count("|") == 3
    assert "<b>" not in row
    assert r"\*1\*" in row
