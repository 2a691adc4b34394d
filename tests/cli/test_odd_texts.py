"""Hostile names and labels: escape codes of terminals and formulas of spreadsheets."""

from __future__ import annotations

import csv

import numpy as np

ESCAPE = "\x1b]8;;http://x\x07\x1b[7m"


def table(path, label):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 2))
    rows = [f"{a:.4f},{b:.4f},{label(a)}" for a, b in X]
    path.write_text("\n".join([f"a,b{ESCAPE},kind", *rows]) + "\n", encoding="utf-8")
    return path


def test_escapes_in_a_table_reach_neither_terminal_nor_report(call, few, tmp_path):
    path = table(
        tmp_path / f"t{ESCAPE.replace('/', '')}.csv", lambda a: f"x{ESCAPE}" if a > 0 else "y"
    )
    words = ("--target", "kind", "--folds", 2, "--workers", 1, "--output", "out")
    status, printed, said = call("learn", path, *words)
    assert status == 0, said
    assert "\x1b" not in printed + said
    for file in ("out/report.html", *map(str, (tmp_path / "out" / "figures").glob("*.svg"))):
        assert b"\x1b" not in (tmp_path / file).read_bytes()


def test_escapes_in_a_message_are_stripped(call, tmp_path):
    path = tmp_path / "curve.csv"
    path.write_text(f"size{ESCAPE}x,loss\x9b\n1,2\n")
    status, _, said = call("forecast", path)
    assert status == 2
    assert not {"\x1b", "\x07", "\x9b"} & set(said)


def test_escapes_in_names_of_matrices_are_stripped(call, tmp_path):
    rng = np.random.default_rng(6)
    np.savez(
        tmp_path / "w.npz", **{f"layer{ESCAPE.replace('/', '')}": rng.standard_normal((50, 60))}
    )
    status, printed, said = call("diagnose", "w.npz", "--workers", 1, "--output", "out")
    assert status == 0, said
    assert "\x1b" not in printed + said
    assert b"\x1b" not in (tmp_path / "out/report.html").read_bytes()


def test_a_file_whose_name_is_no_text(solvable, tmp_path):
    np.save(tmp_path / "w.npy", np.random.default_rng(7).standard_normal((50, 60)))
    name = b"w\xff\xfe.npy".decode("utf-8", "surrogateescape")
    (tmp_path / "w.npy").rename(tmp_path / name)
    answer = solvable("diagnose", name, "--workers", 1, "--output", "out")
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "out/report.html").stat().st_size > 0


def test_labels_that_are_formulas_are_quoted_in_every_csv(call, few, tmp_path):
    path = table(tmp_path / "t.csv", lambda a: "=1+cmd|x" if a > 0 else "-1")
    words = ("--target", "kind", "--folds", 2, "--workers", 1, "--output", "out", "--quiet")
    assert call("learn", path, *words)[0] == 0
    assert call("predict", "out", path, "--output", "new.csv")[0] == 0
    for file, column in (("out/predictions.csv", "target"), ("new.csv", "predicted")):
        with (tmp_path / file).open(newline="") as stream:
            labels = {row[column] for row in csv.DictReader(stream)}
        assert labels == {"'=1+cmd|x", "-1"}
