"""Series of checkpoints: order, the phase transition of a planted spike, verdicts, and bad input."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import solvable
from solvable.answers.page import page_html
from solvable.diagnose.checkpoints.changes import Change
from solvable.diagnose.checkpoints.figures import colours_of, figures
from solvable.diagnose.checkpoints.history import History, judged, stopped_weights
from solvable.diagnose.checkpoints.numbers_in_names import numbers_of
from solvable.diagnose.checkpoints.series import checkpoints_in, open_series
from solvable.diagnose.checkpoints.view import page as page_of
from solvable.diagnose.diagnosis import Measurement
from solvable.diagnose.noise import RectangularNoise, debias
from solvable.errors import InvalidData, InvalidParameter

P, Q = 100, 200


def follow(source, **options):
    return solvable.diagnose_checkpoints(source, workers=1, **options)


def spiked(strength, seed=0):
    """A fixed signal of a strength in noise of scale 1."""
    signal = np.random.default_rng(99)
    u, v = signal.standard_normal(P), signal.standard_normal(Q)
    noise = np.random.default_rng(seed).standard_normal((P, Q)) / Q**0.5
    return noise + strength * np.outer(u / np.linalg.norm(u), v / np.linalg.norm(v))


@pytest.fixture(scope="module")
def grown():
    """A spike that grows through the transition, in noise that is drawn again for each checkpoint."""
    strengths = np.append(np.linspace(0.0, 2.4, 9), [6.0, 6.5, 7.0])
    found = follow({10 * k: {"layer": spiked(s, seed=k)} for k, s in enumerate(strengths)})
    return strengths, found


def test_the_direction_appears_at_the_predicted_checkpoint(grown):
    strengths, found = grown
    law = RectangularNoise(P / Q)
    # A signal above c^(1/4) leads to a singular value at place(s). Under random signs the matrix is
    # noise of this norm, with the edge sqrt(1 + s²/p) (1 + sqrt(c)); the margin is a few percent.
    edges = (1 + strengths**2 / P) ** 0.5 * (1 + (P / Q) ** 0.5)
    places = np.array([law.place(s) if s > law.threshold else 0.0 for s in strengths])
    (row,) = found.histories
    directions = np.array(row.values("directions"))
    assert (directions[places > 1.06 * edges] == 1).all()
    assert (directions[places < 0.98 * edges] == 0).all()
    assert ((places > 1.06 * edges) | (places < 0.98 * edges)).sum() >= 9


def test_directions_of_one_signal_in_fresh_noise_overlap_as_predicted(grown):
    strengths, found = grown
    law = RectangularNoise(P / Q)
    (row,) = found.histories
    # Vectors of one signal in independent noise have the squared overlap o o'; it scatters around it
    # with variance 4 o o' (1 - o o') / p.   (spectra 4)
    places = np.array([law.place(strength) for strength in strengths[6:]])
    own = debias(places, noise=1.0, n_columns=Q, ratio=P / Q).short_overlap
    both = own[:-1] * own[-1]
    measured = np.array([change.overlap for change in row.changes[6:-1]])
    errors = 2 * np.sqrt(both * (1 - both) / P)
    assert (np.abs(measured - both) < 4 * errors + 0.03).all()
    assert row.settled is not None
    # The predicted overlaps are 0.87 at 2.1, 0.90 at 2.4 and 0.98 at 6.
    assert row.settled.place in (8, 9)
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
    counts = row.values("directions")
    assert counts == [1] * 4
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
    assert stopped_weights(change).place == 0


def measured(directions, norm):
    return Measurement("w", (P, Q), directions, norm=norm)


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
    assert [one is None for one in rows["x"].measurements] == [True, False, False]
    pytest.importorskip("pandas")
    frame = found.to_dataframe()
    assert len(frame) == 3 + 1 + 2 + 1
    assert {"matrix", "step", "directions_at_least", "norm"} <= set(frame.columns)


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

    given = {"--initial": Path("before.npz"), "--memory": 2.0, "--inputs-first": True}
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
    counts = {name: rng.integers(0, 9, 3) for name in names}
    histories = tuple(
        judged(
            History(
                name, (P, Q), tuple(measured(int(n), 5.0 + n) for n in counts[name]),
                tuple(Change(0.1, 0.3 - 0.1 * k, 0.0) for k in range(3)),
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
    page = page_html(page_of(found, "solvable diagnose run"))
    assert "<b>.q" not in page
    assert page.count('class="thin"') >= 300
    assert len(page) < 400_000


def test_the_command_writes_a_page_and_resumes(tmp_path, training):
    import subprocess
    import sys

    command = [sys.executable, "-m", "solvable", "diagnose", str(training)]
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
    command += ["--quick"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--quick was given with several checkpoints" in refused.stderr
