"""`solvable diagnose` in processes of its own, run like a user."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file


def spiked(seed, shape, strengths):
    rng = np.random.default_rng(seed)
    p, q = shape
    left = np.linalg.qr(rng.standard_normal((p, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((q, len(strengths))))[0]
    return (rng.standard_normal(shape) / q**0.5 + (left * strengths) @ right.T).astype(np.float32)


def weights():
    return {
        "layer.0.weight": spiked(0, (60, 150), [4.0, 3.0]),
        "layer.0.bias": np.ones(60, dtype=np.float32),
        "layer.1.weight": np.random.default_rng(1).standard_normal((50, 60)).astype(np.float16),
        "layer.2.weight": np.ones((40, 50), dtype=np.float32),
        "head.weight": np.random.default_rng(2).standard_normal((3, 60)).astype(np.float32),
    }


@pytest.fixture(scope="module")
def diagnosed(terminal_in, tmp_path_factory):
    """A program in a directory with the diagnosis of a small file."""
    program = terminal_in(tmp_path_factory.mktemp("diagnosed"), "diagnose", columns=None)
    save_file(weights(), program.cwd / "w.safetensors")
    program.answer = program("w.safetensors", "--output", "out")
    assert program.answer.returncode == 0, program.answer.stderr
    program.result = json.loads((program.cwd / "out" / "result.json").read_text())
    return program


def test_a_row_per_matrix_and_what_it_means(diagnosed):
    shown = diagnosed.answer.stdout
    for part in (
        "w.safetensors: At least 2 directions above random signs, in 1 of 4 matrices.",
        "1 of 4 matrices holds learned features above a bulk of noise: 2 in layer.0.weight.\n"
        "Read: 4 matrices and 1 vector.",
        "What did the matrices learn?",
        "bulk+spikes (layer.0.weight): ",
        "random-like (layer.1.weight): ",
        "What was not fitted?",
        "head.weight: a 3 x 60 matrix has 3 singular values; at least 30 are needed.",
        "out/report.html",
    ):
        assert part in shown
    table = shown.split("What did")[0].split("Read:")[1].splitlines()
    rows = {line.split()[0]: line for line in table if line.startswith(("layer", "head"))}
    assert rows.keys() == {"layer.0.weight", "layer.1.weight", "layer.2.weight", "head.weight"}
    assert "60 x 150" not in rows["layer.0.weight"]
    detailed = diagnosed("w.safetensors", "--output", "out", "--details").stdout
    assert re.search(r"layer.0.weight  60 x 150 +2 .* bulk\+spikes", detailed)
    assert "not fitted" in rows["layer.2.weight"]
    # No progress and no colours in a pipe.
    assert "\x1b" not in shown + diagnosed.answer.stderr
    assert len(diagnosed.answer.stderr.splitlines()) == 1


def test_the_directory_holds_page_and_numbers(diagnosed):
    out = diagnosed.cwd / "out"
    assert {one.name for one in out.iterdir()} == {"report.html", "result.json", "rows.csv"}
    result = diagnosed.result
    assert result["format"] == "solvable-diagnose-1"
    assert result["complete"] is True
    assert result["phases"] == {"random-like": 1, "bulk+spikes": 1}
    assert [one["name"] for one in result["vectors"]] == ["layer.0.bias"]
    row = next(one for one in result["matrices"] if one["name"] == "layer.0.weight")
    assert (row["shape"], row["phase"]) == ([60, 150], "bulk+spikes")
    assert "layer.0.weight" in (out / "report.html").read_text()


def test_json_is_all_of_standard_output(diagnosed, call, monkeypatch):
    monkeypatch.chdir(diagnosed.cwd)
    save_file(weights(), "same.safetensors")
    words = ("same.safetensors", "--output", "out", "--json", "--quiet")
    status, printed, error = call("diagnose", *words)
    assert (status, error) == (0, "")
    shown = json.loads(printed)
    names = {"report": "report.html", "result": "result.json", "rows": "rows.csv"}
    assert shown.pop("files") == {name: f"out/{file}" for name, file in names.items()}
    # The same weights under another name have the same numbers, and the directory is theirs.
    changing = ("seconds", "file", "command")
    again = {name: value for name, value in shown.items() if name not in changing}
    assert again == {name: diagnosed.result[name] for name in again}


@pytest.mark.parametrize("ending", ["npz", "npy"])
def test_arrays_of_numpy(tmp_path, call, ending):
    matrix = weights()["layer.0.weight"]
    path = tmp_path / f"w.{ending}"
    np.savez(path, coefs=matrix) if ending == "npz" else np.save(path, matrix)
    status, printed, _ = call("diagnose", path, "--json")
    assert status == 0
    shown = json.loads(printed)
    assert [one["name"] for one in shown["matrices"]] == ["coefs" if ending == "npz" else "w"]
    assert shown["phases"] == {"bulk+spikes": 1}
    directory = Path(shown["files"]["report"]).parent
    assert directory.parent.name == "solvable-runs"
    assert directory.name == f"diagnose-w-{shown['fingerprint'][:8]}"


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("sprung"),))


def test_a_pickle_in_an_archive_is_not_opened(tmp_path, call):
    np.savez(tmp_path / "w.npz", fine=weights()["layer.1.weight"], trap=np.array([[Trap()]]))
    (tmp_path / "sprung").unlink(missing_ok=True)
    status, printed, error = call("diagnose", "w.npz")
    assert status == 0, error
    assert "trap: it holds Python objects, which could run code" in printed
    assert "random-like (fine)" in printed
    assert not (tmp_path / "sprung").exists()


def test_a_cut_file_is_refused(tmp_path, call):
    arrays = {"first": weights()["layer.1.weight"], "second": weights()["layer.0.weight"]}
    save_file(arrays, tmp_path / "whole.safetensors")
    whole = (tmp_path / "whole.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-1000])
    status, printed, error = call("diagnose", "cut.safetensors", "--output", "out")
    assert (status, printed) == (2, "")
    assert "cut.safetensors is cut: it has" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def hostile(tmp_path: Path) -> dict[str, Path]:
    """Files without any readable content."""
    paths = {
        name: tmp_path / f"{name}.safetensors" for name in ("empty", "lies", "garbage", "bomb")
    }
    paths["empty"].write_bytes(b"")
    paths["lies"].write_bytes(struct.pack("<Q", 2**62) + b"{}")
    paths["garbage"].write_bytes(struct.pack("<Q", 9) + b"not json!")
    paths["bomb"].write_bytes(struct.pack("<Q", 100_000) + b"[" * 100_000)
    paths["not_a_zip"] = tmp_path / "w.npz"
    paths["not_a_zip"].write_bytes(b"PK\x03\x04 but no more")
    paths["no_arrays"] = tmp_path / "none.npz"
    with zipfile.ZipFile(paths["no_arrays"], "w"):
        pass
    paths["pickle"] = tmp_path / "model.pt"
    paths["pickle"].write_bytes(b"\x80\x04.")
    paths["directory"] = tmp_path / "folder.safetensors"
    paths["directory"].mkdir()
    paths["missing"] = tmp_path / "missing.npy"
    paths["no_array"] = tmp_path / "bad.npy"
    paths["no_array"].write_bytes(b"\x93NUMPY\x01\x00")
    return paths


def test_hostile_files_end_with_one_line(tmp_path, call):
    for name, path in hostile(tmp_path).items():
        status, printed, error = call("diagnose", path, "--output", tmp_path / "out")
        assert (status, printed) == (2, ""), name
        assert error.startswith("solvable: "), name
        assert error.count("\n") == 1, name
        assert path.name in error, name
    assert not (tmp_path / "out").exists()


def test_a_header_that_promises_too_much_takes_no_memory(tmp_path, call):
    header = {"w": {"dtype": "F64", "shape": [10**6, 10**6], "data_offsets": [0, 8 * 10**12]}}
    text = json.dumps(header).encode()
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    (tmp_path / "w.npy").write_bytes(stream.getvalue())
    status, printed, error = call("diagnose", "w.safetensors")
    assert (status, printed) == (2, "")
    assert "w.safetensors is cut" in error
    status, printed, error = call("diagnose", "w.npy", "--output", "out")
    assert (status, printed) == (2, "")
    assert "w.npy: no matrix can be measured. w: " in error
    assert error.count("solvable: ") == 1
    assert not (tmp_path / "out").exists()


def test_integers_and_missing_numbers_alone_are_refused(tmp_path, call):
    save_file({"codes": np.ones((200, 100), np.int64)}, tmp_path / "codes.safetensors")
    save_file({"w": np.full((200, 100), np.nan)}, tmp_path / "lost.safetensors")
    for name, reason in (("codes", "codes: integers"), ("lost", "w: 20000 of 20000 entries")):
        status, printed, error = call("diagnose", f"{name}.safetensors", "--output", "out")
        assert (status, printed) == (2, "")
        assert f"{name}.safetensors: no matrix can be measured. {reason}" in error
        assert error.count("solvable: ") == 1
        assert not (tmp_path / "out").exists()
    before = set(tmp_path.iterdir())
    status, _, error = call("diagnose", "lost.safetensors")
    assert status == 2
    assert set(tmp_path.iterdir()) == before, "the default directory of results was made"


def test_nothing_is_overwritten(tmp_path, call, diagnosed):
    matrix = tmp_path / "w.npy"
    np.save(matrix, weights()["layer.1.weight"])
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "report.html").write_text("my own")
    status, printed, error = call("diagnose", matrix, "--output", mine)
    assert (status, printed) == (2, "")
    assert "report.html" in error
    assert "overwritten" in error
    assert (mine / "report.html").read_text() == "my own"
    other = diagnosed.cwd / "out"
    before = (other / "result.json").read_bytes()
    status, _, error = call("diagnose", matrix, "--output", other)
    assert status == 2
    assert "other weights" in error
    assert (other / "result.json").read_bytes() == before
    status, _, error = call("diagnose", matrix, "--output", matrix)
    assert status == 2
    assert "a file" in error


def test_another_seed_is_another_request(tmp_path, call):
    np.save(tmp_path / "w.npy", weights()["layer.1.weight"])
    directories = set()
    for seed in (0, 1):
        status, printed, _ = call("diagnose", "w.npy", "--seed", seed, "--json")
        assert status == 0
        directories.add(json.loads(printed)["files"]["report"])
    assert len(directories) == 2


def test_initial_weights_tell_what_changed(tmp_path, call):
    noise = np.random.default_rng(5).standard_normal((60, 90)) / 90**0.5
    left, right = (np.random.default_rng(side).standard_normal(side) for side in noise.shape)
    feature = 4.0 * np.outer(left, right) / np.linalg.norm(left) / np.linalg.norm(right)
    np.savez(tmp_path / "before.npz", w=noise)
    np.savez(tmp_path / "after.npz", w=noise + feature)
    answers = []
    for workers in (1, 2):
        words = ("diagnose", "after.npz", "--initial", "before.npz", "--workers", workers)
        status, printed, _ = call(*words, "--json")
        assert status == 0
        answers.append(json.loads(printed))
        assert answers[-1].pop("seconds") > 0
    # The same directory and the same numbers, whatever the number of workers.
    assert answers[0] == answers[1]
    row = answers[0]["matrices"][0]
    assert row["phase"] == "bulk+spikes"
    compared = row["initial"]
    assert compared["phase"] == "random-like"
    # The norm of the change is 4 by construction.
    assert compared["relative_change"] == pytest.approx(4 / np.linalg.norm(noise), rel=1e-6)
    assert answers[0]["initial"] == "before.npz"
    status, printed, _ = call("diagnose", "after.npz", "--initial", "before.npz")
    assert "What has changed since the initial weights?" in printed
    assert call("diagnose", "after.npz", "--initial", "gone.npz")[0] == 2


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_keeps_the_rows_that_are_done(terminal_in, tmp_path, workers):
    program = terminal_in(tmp_path, "diagnose", columns=None)
    rng = np.random.default_rng(0)
    many = {f"w{i}": rng.standard_normal((200, 400)).astype(np.float32) for i in range(1, 400)}
    np.savez(tmp_path / "w.npz", w0=weights()["layer.1.weight"], **many)
    process = program.start("w.npz", "--output", "out", "--workers", workers)
    # Before this line the program may still be importing, and an interrupt ends Python itself.
    assert process.stderr.readline().startswith("w.npz: 400 matrices")
    kept, deadline = tmp_path / ".out.part", time.monotonic() + 100
    while not kept.exists() or kept.read_bytes().count(b"\n\n") < 4:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    # Like a terminal: the signal goes to the workers too.
    os.killpg(process.pid, signal.SIGINT)
    printed, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "interrupted" in error
    assert "Traceback" not in error
    assert "interrupted after" in printed
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["complete"] is False
    assert 1 <= len(result["matrices"]) < 400
    assert "interrupted after" in (tmp_path / "out" / "report.html").read_text()


def test_help_teaches_and_loads_nothing_heavy(terminal_in, tmp_path):
    program = terminal_in(tmp_path, "diagnose", columns=None)
    code = (
        "import sys\nfrom solvable.cli import main\nstatus = main(['diagnose', '--help'])\n"
        "heavy = {'numpy', 'scipy', 'matplotlib', 'plotly', 'jinja2'} & set(sys.modules)\n"
        "assert status == 0 and not heavy, heavy"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env=program.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    for part in (
        "solvable diagnose model.safetensors",
        "--output",
        "nothing in it is ever executed",
    ):
        assert part in answer.stdout


def test_no_file_is_bad_input(call):
    status, _, error = call("diagnose")
    assert status == 2
    assert "diagnose needs WEIGHTS" in error


def test_no_cut_is_suggested_of_embeddings_and_fused_projections(terminal_in, tmp_path):
    program = terminal_in(tmp_path, "diagnose", columns=None)
    strong = spiked(3, (100, 150), [16.0, 12.0, 9.0, 7.0, 6.0, 5.0])
    arrays = {
        "fc.weight": strong,
        "wte.weight": strong,
        "attn.in_proj_weight": spiked(4, (384, 128), [3.5, 3.0]),
    }
    save_file(arrays, tmp_path / "w.safetensors")
    answer = program("w.safetensors", "--output", "out")
    assert answer.returncode == 0, answer.stderr
    printed = " ".join(answer.stdout.split())
    assert "Read: 5 matrices" in printed
    said = printed.split("Which layouts were assumed?")[1].split("report out")[0]
    assert (
        "attn.in_proj_weight[*], all 3: query, key and value one after the other in its rows"
        in said
    )
    assert "cut" not in printed
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert all(one["directions"] is not None for one in result["matrices"])


def test_subnormal_numbers_leave_no_warning(terminal_in, tmp_path):
    program = terminal_in(tmp_path, "diagnose", columns=None)
    tiny = 1e-320 * np.random.default_rng(6).standard_normal((40, 50))
    np.savez(tmp_path / "w.npz", tiny=tiny, fine=weights()["layer.1.weight"])
    answer = program("w.npz", "--output", "out")
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stderr.splitlines()) == 1  # The line that counts the matrices.
    assert "tiny: its largest entry" in answer.stdout
    assert "is out of range; allowed: 1e-301 to 1e+301" in " ".join(answer.stdout.split())


def test_quick_numbers_are_a_table(tmp_path, call):
    np.savez(tmp_path / "w.npz", a=spiked(0, (60, 150), [4.0, 3.0]), b=np.ones((3, 60)))
    status, printed, _ = call("diagnose", "w.npz", "--quick", "--output", "out")
    assert status == 0
    assert "w.npz: At least 3 directions above random signs, in 2 of 2 matrices." in printed
    assert "phase" not in printed
    table = (tmp_path / "out" / "rows.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["matrix"] for row in rows] == ["a", "b"]
    assert [row["directions_at_least"] for row in rows] == ["2", "1"]
    words = ("diagnose", "w.npz", "--quick", "--output", "out", "--quiet")
    shown = json.loads(call(*words, "--json")[1])
    assert shown["matrices"][0]["directions"] == 2
    assert call(*words, "--csv")[1] == table


def test_names_in_the_table_do_not_run_as_formulas(tmp_path, call):
    np.savez(tmp_path / "w.npz", **{"=HYPERLINK(1)": np.ones((3, 60)), "b": np.ones((4, 60))})
    assert call("diagnose", "w.npz", "--quick", "--output", "out")[0] == 0
    table = (tmp_path / "out" / "rows.csv").read_text()
    assert "\n'=HYPERLINK(1)," in table


def test_broken_weights_give_a_status_for_a_pipeline(tmp_path, call):
    before = {"a": spiked(0, (60, 150), [4.0, 3.0]), "b": np.ones((3, 60))}
    before["b"][1:] = np.random.default_rng(1).standard_normal((2, 60))
    after = {name: array.copy() for name, array in before.items()}
    np.savez(tmp_path / "before.npz", **before)
    after["a"] = spiked(0, (60, 150), [0.01, 0.01])
    after["b"][0] = 0.0
    np.savez(tmp_path / "lost.npz", **after)
    after["b"][1, 7] = np.nan
    np.savez(tmp_path / "nan.npz", **after)
    words = ("--quick", "--check", "--output")
    assert call("diagnose", "before.npz", *words, "fine")[0] == 0
    status, printed, _ = call("diagnose", "lost.npz", "--initial", "before.npz", *words, "lost")
    assert status == 1
    assert "Dead rows: 1 in b." in printed
    assert "Lost at least half of their directions: a (2 to 0)." in printed
    status, printed, _ = call("diagnose", "nan.npz", "--quick", "--output", "nan")
    assert status == 0
    assert "NaN or infinite entries: b." in printed
    assert call("diagnose", "nan.npz", *words, "nan")[0] == 1
