"""Write numbers, table and figure of docs/random-settings.md from the data of random_settings.py.

    python benchmarks/random_settings_page.py

Rewrites the part of the page between its two marks, and docs/figures/random-settings.svg.
"""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from solvable.frame import registry
from solvable.frame.statistics import SPREAD
from solvable.plots import Figure, Series, format_number, write_figures

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "random-settings.md"
FIGURE = HERE.parent / "docs" / "figures" / "random-settings.svg"
MARKS = ("<!-- numbers -->\n", "<!-- end -->\n")
DECIDED = ("holds", "holds weakly", "fails")


def settings() -> list[dict[str, Any]]:
    """Read the records of the settings."""
    text = (HERE / "random_settings" / "settings.json").read_text()
    return list(json.loads(text)["settings"])


def numbers() -> list[dict[str, Any]]:
    """Read rows of compared numbers; `excess` is the deviation over tolerance plus allowance."""
    kinds: dict[str, dict[str, str]] = {}
    with (HERE / "random_settings" / "numbers.csv").open() as stream:
        rows: list[dict[str, Any]] = list(csv.DictReader(stream))
    for row in rows:
        for name in ("measured", "standard_error", "predicted"):
            row[name] = float(row[name])
        row["excess"] = None
        if row["claim"]:
            system = row["system"]
            if system not in kinds:
                claims = registry.load(system).claims
                kinds[system] = {c.name: getattr(c, "kind", "equal") for c in claims}
            tolerance, allowance = float(row["stated_tolerance"]), float(row["allowance"])
            row["stated"] = tolerance
            row["noisy"] = allowance > SPREAD * tolerance
            sign = {"equal": 0, "at least": -1, "at most": 1}[kinds[system][row["claim"]]]
            deviation = row["measured"] - row["predicted"]
            deviation = sign * deviation if sign else abs(deviation)
            row["deviation"], row["excess"] = deviation, deviation / (tolerance + allowance)
    return rows


def share(part: int, whole: int) -> str:
    """Format a share in per cent, with its counts."""
    return f"{100 * part / whole:.0f} % ({part} of {whole})" if whole else "none"


def counts(records: list[dict[str, Any]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Count verdicts, numbers precise enough to be judged, and numbers within tolerance."""
    verdicts = Counter(v["outcome"] for r in records for v in r.get("verdicts", []))
    judged = [row for row in rows if row["excess"] is not None and not row["noisy"]]
    return {
        "settings": len(records),
        "results": sum("error" not in record for record in records),
        "verdicts": verdicts,
        "decided": sum(verdicts[word] for word in DECIDED),
        "all": verdicts.total(),
        "numbers": len(judged),
        "within": sum(row["excess"] <= 1 for row in judged),
        "stated": sum(row["deviation"] <= row["stated"] for row in judged),
        "noisy": sum(row["excess"] is not None and row["noisy"] for row in rows),
        "unjudged": sum(row["excess"] is None for row in rows),
    }


def summary(records: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[str]:
    """Return the shares as a Markdown list."""
    c = counts(records, rows)
    held = c["verdicts"]["holds"] + c["verdicts"]["holds weakly"]
    return [
        f"- {c['settings']} settings of {len({r['system'] for r in records})} systems; "
        f"{c['results']} have a result.",
        f"- Testable verdicts: {share(c['decided'], c['all'])}.",
        f"- Testable verdicts that hold: {share(held, c['decided'])}, "
        f"{c['verdicts']['holds weakly']} of them weakly; {c['verdicts']['fails']} fail.",
        f"- Numbers within tolerance: {share(c['within'], c['numbers'])}; "
        f"{share(c['stated'], c['numbers'])} are within it without allowance for scatter. "
        f"{c['noisy']} other numbers are too noisy to be judged.",
    ]


def table(records: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[str]:
    """Return a Markdown table with a line for each system."""
    lines = [
        "| system | settings | hold | hold weakly | fail | not testable | numbers within tolerance |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(sorted(record["system"] for record in records)):
        c = counts(
            [record for record in records if record["system"] == name],
            [row for row in rows if row["system"] == name],
        )
        v = c["verdicts"]
        outcomes = " | ".join(str(v[word]) for word in (*DECIDED, "not testable"))
        lines.append(
            f"| {name} | {c['results']} | {outcomes} | {share(c['within'], c['numbers'])} |"
        )
    return lines


def worst(rows: list[dict[str, Any]], count: int = 10) -> list[str]:
    """Return a table of the largest deviations, in units of tolerance plus allowance."""
    judged = [row for row in rows if row["excess"] is not None and not row["noisy"]]
    lines = [
        "| system and setting | claim | axis value | measured | predicted | deviation over allowed one |"
    ]
    lines.append("|---|---|---|---|---|---|")
    for row in sorted(judged, key=lambda row: -row["excess"])[:count]:
        entry = f", entry {int(row['entry']) + 1}" if row["entry"] else ""
        measured, predicted = (format_number(row[k], 3) for k in ("measured", "predicted"))
        lines.append(
            f"| {row['system']} {row['setting']} | `{row['claim']}` | {float(row['point']):g}{entry} "
            f"| {measured} | {predicted} | {row['excess']:.2f} |"
        )
    return lines


def block() -> str:
    """Return the part of the page that depends on the data."""
    records, rows = settings(), numbers()
    parts = (summary(records, rows), table(records, rows), worst(rows))
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def figure() -> Figure:
    """Draw measured against predicted numbers on logarithmic axes."""
    rows = [
        row
        for row in numbers()
        if min(row["measured"], row["predicted"]) > 1e-4 and int(row["entry"] or 0) < 3
    ]
    groups = {
        "judged by no claim": [r for r in rows if r["excess"] is None],
        "within tolerance": [r for r in rows if r["excess"] is not None and r["excess"] <= 1],
        "beyond tolerance": [r for r in rows if r["excess"] is not None and r["excess"] > 1],
    }
    ends = [row["predicted"] for row in rows]
    line = np.array([min(ends), max(ends)])
    points = [
        Series(
            f"{name} ({len(group)})",
            [r["predicted"] for r in group],
            [r["measured"] for r in group],
            kind="points",
            colour=colour,
        )
        for colour, (name, group) in enumerate(groups.items())
        if group
    ]
    return Figure(
        "random-settings",
        "Settings drawn at random",
        "predicted",
        "measured",
        [Series("equal", line, line, kind="line", colour=3), *points],
        caption="Means over replicates, without numbers below 0.0001 and list entries after the third.",
        x_scale="log",
        y_scale="log",
    )


def main() -> None:
    """Rewrite this part of the page, and its figure."""
    before, rest = PAGE.read_text().split(MARKS[0])
    PAGE.write_text(before + MARKS[0] + block() + MARKS[1] + rest.split(MARKS[1])[1])
    with tempfile.TemporaryDirectory() as home:
        write_figures([figure()], home)
        shutil.copyfile(next(Path(home).rglob("*.svg")), FIGURE)
    print(block(), f"\n{FIGURE.name}: {FIGURE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
