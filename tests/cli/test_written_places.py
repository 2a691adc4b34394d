"""Commands write into their drafts alone, whatever the files that they read say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# Notes every path that Python opens for writing, makes, moves, links or removes.
_PROGRAM = """
import json, os, sys
from pathlib import Path
seen = []
def note(event, values):
    if event == "open" and not isinstance(values[0], int):
        if (values[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            seen.append(("write", os.fsdecode(values[0])))
    elif event in ("os.rename", "os.link", "os.symlink"):
        seen.append((event, os.fsdecode(values[1])))
    elif event in ("os.mkdir", "os.rmdir", "os.remove", "os.truncate", "os.chmod"):
        if not isinstance(values[0], int):
            # Files of a tree that is removed are named relative to an open folder.
            folder = values[-1] if event in ("os.rmdir", "os.remove") else -1
            folder = os.readlink(f"/proc/self/fd/{folder}") if folder >= 0 else ""
            seen.append((event, os.path.join(folder, os.fsdecode(values[0]))))
    elif event == "sqlite3.connect" and "mode=ro" not in os.fsdecode(values[0]):
        seen.append(("write", os.fsdecode(values[0])))
sys.addaudithook(note)
from solvable.cli import main
status = main(sys.argv[2:])
Path(sys.argv[1]).write_text(json.dumps([status, seen]))
"""


def run_noted(tmp_path: Path, words: list[str]) -> tuple[int, list[tuple[str, str]]]:
    """Run a command in its own process; return its status, and what it wrote where."""
    caches = {
        name: str(tmp_path / "cache") for name in ("TMPDIR", "MPLCONFIGDIR", "XDG_CACHE_HOME")
    }
    (tmp_path / "cache").mkdir()
    (tmp_path / "work").mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, "-B", "-c", _PROGRAM, str(tmp_path / "seen.json"), *words],
        env=os.environ | caches,
        cwd=tmp_path / "work",
        check=True,
        capture_output=True,
    )
    status, seen = json.loads((tmp_path / "seen.json").read_text())
    inside = (str(tmp_path / "cache"), "/dev/", "/proc/self/", str(tmp_path / "seen.json"))
    return status, [(what, path) for what, path in seen if not path.startswith(inside)]


def onnx_with_data_outside(tmp_path: Path) -> Path:
    """Write a graph of two arrays, of which one is said to lie in a file above the folder."""
    onnx = pytest.importorskip("onnx")
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((40, 60)).astype(np.float32) for _ in range(2)]
    tensors = [
        numpy_helper.from_array(array, name) for array, name in zip(arrays, "ab", strict=True)
    ]
    tensors[0].ClearField("raw_data")
    tensors[0].data_location = onnx.TensorProto.EXTERNAL
    tensors[0].external_data.add(key="location", value="../../settings.cfg")
    graph = helper.make_graph([], "g", [], [], tensors)
    path = tmp_path / "work" / "models" / "m.onnx"
    path.parent.mkdir(parents=True)
    onnx.save(helper.make_model(graph), path)
    (tmp_path / "settings.cfg").write_bytes(b"mine" * 2400)
    return path


def table(tmp_path: Path) -> Path:
    """Write a table of numbers."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    rows = np.column_stack([X, X[:, 0] ** 2])
    path = tmp_path / "data.csv"
    np.savetxt(path, rows, delimiter=",", header="a,b,y", comments="")
    return path


@pytest.mark.parametrize("command", ["diagnose", "diagnose --quick", "learn", "run"])
def test_a_command_writes_into_its_draft_alone(tmp_path, command):
    words = {
        "diagnose": lambda: [str(onnx_with_data_outside(tmp_path)), "--workers", "1"],
        "diagnose --quick": lambda: [str(onnx_with_data_outside(tmp_path)), "--workers", "1"],
        "learn": lambda: [str(table(tmp_path)), "--target", "y", "--workers", "1"],
        "run": lambda: ["kernel-staircase", "--seeds", "1", "--workers", "1"],
    }[command]()
    out = tmp_path / "out" / "one"
    out.parent.mkdir()
    status, seen = run_noted(tmp_path, [*command.split(), *words, "--output", str(out)])
    assert status in (0, 1)
    assert seen
    for what, path in seen:
        place = Path(path)
        assert out.parent in (place, *place.parents) or place == Path(out.name), (what, path)
        if what == "write" and command != "run":  # a study is written line by line
            parts = place.relative_to(out.parent).parts
            assert any(part.endswith(".part") for part in parts), path
    if command.startswith("diagnose"):
        assert (tmp_path / "settings.cfg").read_bytes() == b"mine" * 2400
        rows = json.loads((out / "result.json").read_text())["matrices"]
        reasons = {row["name"]: row.get("reason") or row.get("fault") or "" for row in rows}
        assert "'../../settings.cfg' is outside the folder" in reasons["a"]
        assert "settings.cfg" not in reasons["b"]
