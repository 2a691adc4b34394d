"""The command ``solvable probe``: what it prints and writes."""

import json

from solvable.cli import main

WORDS = [
    "probe", "spectral", "boosted-trees", "--set", "dimension=10", "features=2",
    "--samples", "100", "800", "--steps", "5", "40", "--seeds", "1", "--workers", "1", "--output", "run",
]  # fmt: skip


def test_tables_figures_and_json(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert main(WORDS) == 0
    printed = capfd.readouterr().out
    assert "spectral learns half of feature 1" in printed
    assert "On 800 rows boosted-trees learns half of feature 1" in printed
    assert "boosted-trees, 800 rows" in printed
    assert "0.20 by chance" in printed
    assert "Not observed in training, as they cannot be: spectral." in printed
    written = {path.name for path in (tmp_path / "run" / "figures").glob("*.svg")}
    assert {"shares-spectral.svg", "steps-boosted-trees.svg", "half-shares.svg"} <= written
    assert "--steps 5 40" in (tmp_path / "run" / "report.html").read_text("utf-8")
    assert main([*WORDS, "--json", "--quiet"]) == 0
    plain = json.loads(capfd.readouterr().out)
    assert {row["step"] for row in plain["features"]} == {None, 5, 40}
    assert {row["learner"] for row in plain["half_steps"]} == {"boosted-trees"}
    assert {"features", "half_samples", "references"} <= set(plain)
