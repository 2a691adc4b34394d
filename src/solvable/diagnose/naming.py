"""Names of matrices in a sentence: a few names in full, many names by their common form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from solvable.diagnose.diagnosis import MatrixDiagnosis
from solvable.plots.words import listed

NAMED = 3  # largest number of matrices that a sentence names one by one


def kinds(
    rows: Sequence[MatrixDiagnosis], among: Sequence[MatrixDiagnosis], most: int = NAMED
) -> str:
    """Write a list of matrices; names that differ only in their numbers are merged."""
    if len(rows) <= min(most, 2):
        return listed([row.name for row in rows])
    mine: dict[str, list[str]] = {}
    for row in rows:
        mine.setdefault(_kind(row.name), []).append(row.name)
    totals = Counter(_kind(row.name) for row in among)
    order = sorted(mine, key=lambda kind: -len(mine[kind]))
    lines = []
    for kind in order[:most]:
        names, total = mine[kind], totals[kind]
        part = f", all {total}" if len(names) == total else f", {len(names)} of {total}"
        lines.append(names[0] if len(names) == 1 else f"{kind}{part}")
    more = sum(len(mine[kind]) for kind in order[most:])
    return "; ".join(lines) + (f"; and {more} more" if more else "")


def _kind(name: str) -> str:
    # Parts of fused arrays, such as "in_proj_weight[query]", are merged as well.
    return re.sub(r"\d+", "*", re.sub(r"\[[a-z ]+\]$", "[*]", name))
