"""Sentences about cuts: the values that a cut would keep, and how to measure the cut's effect."""

from __future__ import annotations

from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import MatrixDiagnosis
from solvable.diagnose.naming import NAMED, kinds
from solvable.plots.words import counted

# code shown to the user; ``solvable.diagnose.cut_matrix`` makes the same cut
SNIPPET = "U, s, Vt = np.linalg.svd(W, full_matrices=False); W_cut = (U[:, :k] * s[:k]) @ Vt[:k]"


def cuts(found: Diagnosed) -> list[str]:
    """Sentences on suggested cuts, on the other cuts by reason, and on how to measure the effect."""
    suggested = [row for row in found.fitted if row.suggestion and row.suggestion.suggested]
    # Cuts that keep the largest share of the squared norm come first.
    suggested.sort(key=lambda row: -row.advice.kept_share if row.advice else 0.0)
    lines = [f"{row.name}: {row.advice.text}" for row in suggested[:NAMED] if row.advice]
    rest = suggested[NAMED:]
    if rest:
        lines.append(
            f"Also worth a trial: {counted(len(rest), 'other cut')} "
            f"({kinds(rest, found.matrices)})."
        )
    if suggested:
        lines.append(
            "The matrix error is the Frobenius distance to the signals found behind the matrix, not "
            "the loss of the network. To measure the effect of a cut, evaluate the loss on held-out "
            f"data with the cut matrix: {SNIPPET}, with k the number of values kept."
        )
    return lines + _withheld(found)


def _withheld(found: Diagnosed) -> list[str]:
    reasons: dict[str, list[MatrixDiagnosis]] = {}
    for row in found.fitted:
        if row.suggestion is not None and not row.suggestion.suggested:
            reasons.setdefault(row.suggestion.text, []).append(row)
    ordered = sorted(reasons.items(), key=lambda pair: -len(pair[1]))
    return [
        f"No cut is suggested for {kinds(rows, found.matrices)}: {reason}."
        for reason, rows in ordered
    ]


def remarks(row: MatrixDiagnosis) -> list[str]:
    """Sentences about one matrix: its cut, and the layout of its array."""
    lines = []
    if row.suggestion is not None:
        lines.append(
            "This cut is worth a trial: evaluate the loss with it on held-out data."
            if row.suggestion.suggested
            else f"No cut is suggested: {row.suggestion.text}."
        )
    if row.layout:
        lines.append(f"Assumed layout: {row.layout}.")
    return lines


def layouts(found: Diagnosed) -> list[str]:
    """Layouts assumed for fused projections, with the matrices of each."""
    groups: dict[str, list[MatrixDiagnosis]] = {}
    for row in found.matrices:
        if row.layout:
            groups.setdefault(row.layout, []).append(row)
    return [f"{kinds(rows, found.matrices)}: {layout}." for layout, rows in groups.items()]
