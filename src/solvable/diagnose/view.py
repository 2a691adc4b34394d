"""Display of a file's diagnoses in a notebook, and as a data frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from solvable.diagnose import words
from solvable.diagnose.attention.figures import head_figure
from solvable.diagnose.attention.words import head_table
from solvable.diagnose.depth import depth_figures
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import Estimate, MatrixDiagnosis
from solvable.diagnose.figures import spectrum_figure
from solvable.diagnose.outliers import dead_rows, outlier_text
from solvable.diagnose.tables import matrix_table
from solvable.plots.figure import Figure
from solvable.plots.tables import Table


def line(found: Diagnosed) -> str:
    """File name and main result."""
    return f"{found.name}: {words.answer(found)} Read: {words.subject(found)}."


def tables(found: Diagnosed) -> list[Table]:
    """Two tables: one row per matrix, and one row per attention head or layer."""
    shown = [matrix_table(found)[0]] if found.matrices else []
    return [*shown, head_table(found)] if found.heads else shown


def rows(found: Diagnosed) -> list[dict[str, Any]]:
    """Records for a data frame, one per matrix; each estimate with the ends of its interval."""
    return [_row(row) | {"needed_rank": found.needed_rank(row)} for row in found.matrices]


def _row(row: MatrixDiagnosis) -> dict[str, Any]:
    estimates = {
        "noise": row.noise,
        "shrinkage": row.shrinkage,
        "strongest": row.features[0].strength if row.features else None,
        "tail_exponent": row.exponent.spectrum if row.exponent else None,
    }
    numbers: dict[str, float | None] = {}
    for name, estimate in estimates.items():
        numbers |= _ends(name, estimate)
    compared = row.initial
    difference = None if compared is None else compared.difference
    return {
        "matrix": row.name,
        "shape": "x".join(map(str, row.shape)),
        "stable_rank": row.stable_rank,
        "directions_at_least": row.directions,
        "change": None if compared is None else compared.relative_change,
        "rank_of_change": None if compared is None else compared.rank,
        "new_directions_at_least": None if difference is None else difference.directions,
        "outliers": "; ".join(map(outlier_text, row.outliers)),
        "dead_rows": dead_rows(row.outliers),
        "norm": row.norm,
        "largest": row.largest,
        "phase": row.phase,
        "runner_up": row.runner_up,
        "log_likelihood_ratio": row.log_likelihood_ratio,
        "phase_p_value": row.phase_p_value,
        "features": len(row.features) if row.fitted else None,
        **numbers,
        "reason": row.reason,
    }


def _ends(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    ends = (None,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)
    return dict(zip((name, f"{name}_lower", f"{name}_upper"), ends, strict=True))


def figures(found: Diagnosed) -> Iterator[Figure]:
    """Yield figures against depth, and one with its name for each fitted matrix and head."""
    yield from depth_figures(found)
    for row in found.fitted:
        yield replace(spectrum_figure(row), name=row.name)
    for head in found.heads:
        if head.fitted:
            yield head_figure(head)
