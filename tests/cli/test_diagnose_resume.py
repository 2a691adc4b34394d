"""`solvable diagnose` goes on after it was killed, with the rows of an uninterrupted run."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import save_file


@pytest.fixture
def folder(tmp_path):
    """Shards with an index, vectors, a damaged array, and heads, as model hubs lay them out."""
    rng = np.random.default_rng(0)
    place = tmp_path / "model"
    place.mkdir()
    places = {}
    for shard in range(2):
        arrays = {"norm.weight": np.ones(40, np.float32)} if shard else {}
        for name in ("attn.q_proj", "attn.k_proj", "attn.v_proj", "mlp.up_proj"):
            shape = (80, 40) if name == "mlp.up_proj" else (40, 40)
            arrays[f"layers.{shard}.{name}.weight"] = rng.standard_normal(shape, np.float32)
        arrays[f"spike{shard}"] = rng.standard_normal((30, 50), np.float32) + np.float32(0.5)
        file = f"model-0000{shard + 1}-of-00002.safetensors"
        save_file(arrays, place / file)
        places |= dict.fromkeys(arrays, file)
    places["lost"] = "model-00001-of-00002.safetensors"
    (place / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (place / "config.json").write_text(json.dumps({"num_attention_heads": 4}))
    return place


def command(folder, output, *options):
    words = ["diagnose", str(folder), "--output", str(output), *map(str, options)]
    return [sys.executable, "-m", "solvable", *words]


def killed_after(words, kept, lines):
    """Start a run, kill it after some finished rows, and return the lines that are stored."""
    pipe = subprocess.DEVNULL  # workers that outlive the program for seconds would hold a pipe
    with subprocess.Popen(words, stdout=pipe, stderr=pipe) as process:
        deadline = time.monotonic() + 120
        while not kept.exists() or len(kept.read_bytes().split(b"\n\n")) < lines:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
    return [line for line in kept.read_bytes().split(b"\n") if line]


def content(output):
    table = json.loads((output / "result.json").read_text())
    return {name: value for name, value in table.items() if name not in ("seconds", "command")}


def test_a_killed_diagnosis_goes_on(tmp_path, folder, call):
    assert call("diagnose", folder, "--output", tmp_path / "whole", "--workers", 1)[0] == 0
    output, kept = tmp_path / "out", tmp_path / ".out.part"
    stored = killed_after(command(folder, output, "--workers", 2), kept, 4)
    assert not output.exists()
    # The last line is cut, as by a machine that lost its power.
    kept.write_bytes(b"\n\n".join(stored)[:-100])
    finished = [json.loads(line.partition(b" ")[2])["key"] for line in stored[:-1]]
    assert 3 <= len(set(finished)) == len(finished) < 12
    words = command(folder, output, "--workers", 2, "--progress")
    again = subprocess.run(words, check=True, capture_output=True, text=True)
    assert f"{len(finished)} results of an earlier run are read from .out.part" in again.stderr
    assert f"progress: {len(finished)} of 12 tasks" in again.stderr
    assert content(output) == content(tmp_path / "whole")
    assert len(content(output)["heads"]) == 8
    assert not kept.exists()


def test_rows_of_another_request_are_not_used(tmp_path, call):
    rng = np.random.default_rng(0)
    arrays = {f"w{k}": rng.standard_normal((40, 50)) for k in range(2)}
    np.savez(tmp_path / "w.npz", **arrays)
    kept = tmp_path / ".out.part"
    line = b'{"identity": "of another program", "key": "array 0 w0", "row": null}'
    kept.write_bytes(line + b"\nno JSON\n" + bytes(range(256)))
    status, _, error = call("diagnose", "w.npz", "--output", "out", "--workers", 1)
    assert status == 0
    assert "earlier run" not in error


def test_quick_rows_go_on(tmp_path, folder, call, monkeypatch):
    from solvable.diagnose import matrices_of_file

    def table(output):
        with (output / "rows.csv").open(newline="") as stream:
            return list(csv.DictReader(stream))

    measure, seen = matrices_of_file._diagnose_stored, []

    def interrupted(stored, *rest):
        seen.append(stored.name)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return measure(stored, *rest)

    words = ("diagnose", folder, "--quick", "--workers", 1, "--output")
    assert call(*words, tmp_path / "whole")[0] == 0
    monkeypatch.setattr(matrices_of_file, "_diagnose_stored", interrupted)
    assert call(*words, tmp_path / "out")[0] == 130
    assert (tmp_path / ".out.part").exists()
    status, _, error = call(*words, tmp_path / "out")
    assert status == 0
    assert "5 results of an earlier run" in error
    # Each matrix was measured once, except the one at which the run was stopped.
    assert len(seen) == len(set(seen)) + 1
    assert table(tmp_path / "out") == table(tmp_path / "whole")
    assert not (tmp_path / ".out.part").exists()


def test_a_killed_series_of_checkpoints_goes_on(tmp_path, call):
    rng = np.random.default_rng(0)
    place = tmp_path / "training"
    place.mkdir()
    for step in range(4):
        arrays = {f"w{k}": rng.standard_normal((40, 60), np.float32) for k in range(3)}
        save_file(arrays, place / f"step-{step}.safetensors")
    assert call("diagnose", place, "--output", tmp_path / "whole", "--workers", 1)[0] == 0
    output, kept = tmp_path / "out", tmp_path / ".out.part"
    words = command(place, output, "--workers", 1)
    stored = killed_after(words, kept, 2)
    assert not output.exists()
    kept.write_bytes(b"\n\n".join(stored)[:-100])
    assert subprocess.run(words, check=False, capture_output=True).returncode == 0
    assert content(output)["matrices"] == content(tmp_path / "whole")["matrices"]
    assert not kept.exists()
