"""Series of checkpoints: order, the phase transition of a planted spike, verdicts, and bad input."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import solvable
from solvable.diagnose.checkpoints import verdicts
from solvable.diagnose.checkpoints.changes import Change
from solvable.diagnose.checkpoints.figures import colours_of, figures
from solvable.diagnose.checkpoints.fits import Fit
from solvable.diagnose.checkpoints.history import History
from solvable.diagnose.checkpoints.numbers_in_names import numbers_of
from solvable.diagnose.checkpoints.report import render
from solvable.diagnose.checkpoints.series import checkpoints_in, open_series
from solvable.diagnose.noise import RectangularNoise, noise_edge
from solvable.errors import InvalidData, InvalidParameter

P, Q = 100, 200


def follow(source, **options):
    return solvable.diagnose_checkpoints(source, quick=True, workers=1, **options)


def spiked(strength, seed=0):
    """A fixed signal of a strength in noise of scale 1."""
    signal = np.random.default_rng(99)
    u, v = signal.standard_normal(P), signal.standard_normal(Q)
    noise = np.random.default_rng(seed).standard_normal((P, Q)) / Q**0.5
    return noise + strength * np.outer(u / np.linalg.norm(u), v / np.linalg.norm(v))


@pytest.fixture(scope="module")
def grown():
    """A spike that grows through the transition, in noise that is drawn again for each checkpoint."""
    strengths = np.linspace(0.0, 2.4, 9)
    found = follow({10 * k: {"layer": spiked(s, seed=k)} for k, s in enumerate(strengths)})
    return strengths, found


def test_the_feature_appears_at_the_predicted_checkpoint(grown):
    strengths, found = grown
    law = RectangularNoise(P / Q)
    # A signal above c^(1/4) leads to a singular value at place(s), seen above the edge and its margin.
    cut = noise_edge(P, Q) / Q**0.5
    seen = [s > law.threshold and law.place(s) > cut for s in strengths]
    (row,) = found.histories
    features = np.array(row.values("features"))
    first = seen.index(True)
    assert features.tolist() == [0] * first + [1] * (len(seen) - first)
    phases = [fit.phase for fit in row.fits]
    assert phases == ["random-like"] * first + ["bulk+spikes"] * (len(seen) - first)


def test_directions_of_one_signal_in_fresh_noise_overlap_as_predicted(grown):
    _, found = grown
    (row,) = found.histories
    pairs = [(c.overlap, c.expected, c.error) for c in row.changes[:-1] if c.overlap is not None]
    assert len(pairs) >= 3
    for overlap, expected, error in pairs:
        assert abs(overlap - expected) < 5 * error + 0.05
    assert row.settled is not None
    assert row.stopped is None


def test_a_signal_that_turns_is_not_settled():
    rng = np.random.default_rng(3)
    series = {}
    for step in range(4):
        u, v = (
            np.linalg.qr(rng.standard_normal((P, 1)))[0],
            np.linalg.qr(rng.standard_normal((Q, 1)))[0],
        )
        series[step] = {"layer": spiked(0.0) + 3.0 * u @ v.T}
    (row,) = follow(series).histories
    assert [fit.features for fit in row.fits] == [1, 1, 1, 1]
    assert row.settled is None


def test_weights_that_rest_or_only_fluctuate_have_stopped():
    rng = np.random.default_rng(4)
    base = spiked(2.0)
    rests = [base + shift * np.ones((P, Q)) / 50 for shift in (3.0, 2.0, 1.0, 0.0, 0.0, 0.0)]
    jitters = [base + 0.01 * rng.standard_normal((P, Q)) for _ in range(6)]
    drifts = [base * (1 + 0.1 * k) for k in range(6)]
    found = follow(
        {k: {"rests": rests[k], "jitters": jitters[k], "drifts": drifts[k]} for k in range(6)}
    )
    rest, jitter, drift = (row.stopped for row in found.histories)
    assert (rest.place, rest.fluctuates) == (3, False)
    assert (jitter.place, jitter.fluctuates) == (0, True)
    assert 0.1 < jitter.size < 0.3
    assert drift is None
    assert "2 of 3 matrices stopped changing" in repr(found)


def test_rounding_of_the_file_is_no_change():
    change = [Change(None, 0.02, 2.0**-3), Change(0.02, 0.01, 2.0**-3), Change(0.01, 0.0, 2.0**-3)]
    assert verdicts.stopped_weights(change).place == 0


def fit(features, norm, noise=1.0):
    return Fit(
        "w", (P, Q), "bulk+spikes", features, norm=norm, noise=noise, overlaps=(0.9,) * features
    )


def test_growth_after_the_features_settled_is_a_sign():
    still = Change(0.1, 0.5, 0.0, 0.95, 0.81, 0.01)
    turned = Change(0.1, 0.5, 0.0, 0.20, 0.81, 0.01)
    fits = (fit(2, 9.0), fit(2, 10.0), fit(2, 11.0))
    grown = verdicts.judged(History("w", (P, Q), fits, (turned, still, still)))
    assert [(sign.kind, sign.place) for sign in grown.signs] == [("growth", 1)]
    assert "10 %" in grown.signs[0].text
    turning = verdicts.judged(History("w", (P, Q), fits, (still, turned, still)))
    assert turning.signs == ()


def test_a_trap_counts_only_in_a_norm_that_grew():
    changes = (Change(trap=1.0), Change(trap=1.3), Change(trap=1.4))
    grows = tuple(fit(0, norm) for norm in (9.0, 10.0, 11.0))
    shrinks = tuple(fit(0, norm) for norm in (11.0, 10.0, 9.0))
    signs = [
        verdicts.judged(History("w", (P, Q), fits, changes)).signs for fits in (grows, shrinks)
    ]
    assert [[sign.kind for sign in some] for some in signs] == [["trap"], []]


def test_single_large_entries_are_a_trap():
    heavy = spiked(0.0)
    heavy[3, 5] = 4.0
    found = follow({0: {"w": spiked(0.0)}, 1: {"w": heavy}, 2: {"w": heavy}})
    traps = found.histories[0].values("trap")
    assert traps[0] < 1.05
    assert min(traps[1:]) > 1.3


NAMES = [
    (["step-100.st", "step-20.st"], [100, 20], "step"),
    (["checkpoint-100", "checkpoint-2000"], [100, 2000], "step"),
    (["epoch=1-step=50.ckpt", "epoch=2-step=100.ckpt"], [50, 100], "step"),
    (["epoch=1-step=0.1.ckpt", "epoch=10-step=0.1.ckpt"], [1, 10], "epoch"),
    (["m_v2_00010.pt", "m_v2_00009.pt"], [10, 9], "number in the name"),
    (["step1k", "step500", "step10k"], [1000, 500, 10000], "step"),
    (["init.pt", "step10.pt", "step30.pt", "final.pt"], [0, 10, 30, 50], "step"),
    (["initial-step-0.pt", "step-5.pt", "step-10.pt"], [0, 5, 10], "step"),
]


@pytest.mark.parametrize(("names", "numbers", "unit"), NAMES)
def test_the_number_in_the_names_gives_the_order(names, numbers, unit):
    found = numbers_of(names)
    assert list(found.numbers) == pytest.approx(numbers)
    assert found.unit == unit


def test_names_without_a_common_number_have_none():
    assert numbers_of(["a.pt", "b.pt"]) is None
    assert numbers_of(["a1.pt", "b1.pt"]) is None


@pytest.fixture
def training(tmp_path):
    """Folders as a training program writes them."""
    for step in (200, 1000, 30):
        folder = tmp_path / "run" / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        save_file({"w": spiked(step / 300).astype(np.float32)}, folder / "model.safetensors")
        np.savez(folder / "optimizer.npz", v=np.zeros((40, 40)))
    return tmp_path / "run"


def test_a_folder_of_checkpoints_is_put_in_order(training):
    series = open_series(training)
    assert [part.step for part in series.checkpoints] == [30, 200, 1000]
    assert (series.name, series.axis) == ("run", "step")
    times = {30: 3, 200: 1, 1000: 2}
    for step, time in times.items():
        os.utime(training / f"checkpoint-{step}" / "model.safetensors", (time, time))
    late = open_series(training, order="time")
    assert [part.label for part in late.checkpoints] == [
        "checkpoint-200", "checkpoint-1000", "checkpoint-30",
    ]  # fmt: skip
    save_file({"w": np.eye(3)}, training / "model.safetensors")
    assert checkpoints_in(training) == []


def test_files_that_cannot_be_used_are_named(training):
    (training / "checkpoint-400").mkdir()
    (training / "checkpoint-400" / "model.safetensors").write_bytes(b"damaged")
    found = follow(training)
    assert len(found.labels) == 3
    assert any(note.startswith("checkpoint-400 is left out") for note in found.notes)


def test_absent_reshaped_and_equal_matrices_are_named():
    a, b = spiked(0.0), spiked(2.0)
    found = follow([{"w": a, "old": a, "x": a[:50]}, {"w": a, "x": a}, {"w": a, "x": a, "new": b}])
    notes = " ".join(found.notes)
    assert "old: not in 2 and 3." in notes
    assert "new: not in 1 and 2." in notes
    assert "x: only the checkpoints with the last shape are compared." in notes
    assert "2 and 3 hold the same weights." in notes
    rows = {row.name: row for row in found.histories}
    assert [fit is None for fit in rows["x"].fits] == [True, False, False]
    pytest.importorskip("pandas")
    frame = found.to_dataframe()
    assert len(frame) == 3 + 1 + 2 + 1
    assert {"matrix", "step", "phase", "features", "tail_exponent", "norm"} <= set(frame.columns)


BAD = [
    ([{"w": np.ones((40, 50))}], "1 checkpoint of 1 can be used; allowed: at least two"),
    ([{"w": np.ones((40, 50))}, {"v": np.ones((40, 50))}], "no matrix occurs in two checkpoints"),
    ([{"w": np.ones(4)}, {"w": np.ones(4)}], "0 checkpoints of 2 can be used"),
]


@pytest.mark.parametrize(("source", "message"), BAD)
def test_a_series_needs_two_checkpoints_of_one_model(source, message):
    with pytest.raises(InvalidData, match=message):
        follow(source)


def test_options_of_a_single_model_are_refused():
    from solvable.cli.diagnose import diagnose

    given = {"--prune, --factors or --evaluate": "folder", "--memory": 2.0, "--inputs-first": True}
    for option, value in given.items():
        name = option.split(",")[0].strip("-").replace("-", "_")
        with pytest.raises(InvalidParameter, match=f"{option} was given with several checkpoints"):
            diagnose(Path("first.npz"), Path("second.npz"), **{name: value})


def test_wrong_arguments_are_refused(training):
    with pytest.raises(InvalidParameter, match="allowed: a folder, a list"):
        follow(3)
    with pytest.raises(InvalidParameter, match="order"):
        follow(training, order="size")
    path = training / "checkpoint-200"
    with pytest.raises(InvalidParameter, match="given more than once"):
        follow([path, path])


def test_hundred_matrices_are_drawn_by_kind_and_the_page_is_complete():
    rng = np.random.default_rng(5)
    names = [f"layers.{k}.{part}<b>" for k in range(25) for part in ("q", "k", "v", "o")]
    fits = {name: rng.integers(0, 9, 3) for name in names}
    histories = tuple(
        verdicts.judged(
            History(
                name, (P, Q), tuple(fit(int(n), 5.0 + n) for n in fits[name]),
                tuple(Change(0.1, 0.3 - 0.1 * k, 0.0, trap=1.0) for k in range(3)),
            )
        )
        for name in names
    )  # fmt: skip
    found = solvable.diagnose.checkpoints.history.DiagnosedCheckpoints(
        "run", ("a", "b", "c"), (0.0, 10.0, 1000.0), "step", "Ordered.", histories
    )
    assert set(colours_of(histories).labels.values()) == {
        f"layers.*.{part}<b>" for part in ("q", "k", "v", "o")
    }
    assert len({series.label for series in next(figures(found)).series}) == 4
    page = render(found, "solvable diagnose run")
    assert "<b>.q" not in page
    assert page.count('class="thin"') >= 400
    assert len(page) < 400_000


def test_the_command_writes_a_page_and_resumes(tmp_path, training):
    import subprocess
    import sys

    command = [sys.executable, "-m", "solvable", "diagnose", str(training), "--quick"]
    command += ["--output", str(tmp_path / "out")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("run: ")
    assert "Ordered by the step in the names." in answer.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["steps"] == [30, 200, 1000]
    assert (tmp_path / "out" / "rows.csv").read_text().count("\n") == 4
    assert "report.html" in {path.name for path in (tmp_path / "out").iterdir()}
    assert not list(tmp_path.glob(".out.part"))
    command += ["--details"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--details was given with several checkpoints" in refused.stderr
