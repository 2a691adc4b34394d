"""Write what finished runs of the presets `paper` took and found, for the pages of the papers.

    solvable run quadratic-network --preset paper --seed 1128 --workers 1 --output RUNS/quadratic-network
    python benchmarks/paper_presets.py RUNS/*

Each directory gives one row of `docs/papers/files/paper-presets.csv`; rows of other systems stay.
A run that is not finished is refused.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from solvable.frame.claims import Verdict
from solvable.study import load
from solvable.study.toml import parse_study

TABLE = Path(__file__).parents[1] / "docs" / "papers" / "files" / "paper-presets.csv"
COLUMNS = ("system", "version", "seed", "tasks", "cpu_minutes", "hold", "failing", "untested")


def compared(verdict: Verdict) -> str:
    """Return the numbers of a claim in a phrase."""
    return (
        f"{verdict.claim} ({verdict.measured:.3g} ± {verdict.standard_error:.2g} measured, "
        f"{verdict.expected:.3g} ± {verdict.tolerance:.2g} expected)"
    )


def row_of(directory: Path) -> dict[str, Any]:
    """Return the row of one finished run."""
    found = load(directory)
    if found.missing or found.failures:
        raise SystemExit(
            f"{directory}: {found.missing} tasks are missing; run the study to its end."
        )
    by_status: dict[str, list[Verdict]] = {}
    for verdict in found.verdicts:
        by_status.setdefault(verdict.status, []).append(verdict)
    if "error" in by_status:
        raise SystemExit(f"{directory}: the claim {by_status['error'][0].claim} raised an error.")
    return {
        "system": found.system.name,
        "version": found.snapshot.meta["version"],
        "seed": parse_study(found.snapshot.meta["study"]).seed,
        "tasks": found.planned,
        "cpu_minutes": f"{sum(record['cpu_seconds'] or 0.0 for record in found.records) / 60:.2g}",
        "hold": len(by_status.get("holds", [])),
        "failing": "; ".join(map(compared, by_status.get("fails", []))),
        "untested": len(by_status.get("not testable", [])),
    }


def write(directories: Iterable[Path]) -> None:
    """Replace the rows of the systems of these runs."""
    kept = {}
    if TABLE.exists():
        with TABLE.open(encoding="utf-8", newline="") as file:
            kept = {row["system"]: row for row in csv.DictReader(file)}
    kept.update({row["system"]: row for row in map(row_of, directories)})
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[name] for name in sorted(kept))


if __name__ == "__main__":
    write(Path(argument) for argument in sys.argv[1:])
