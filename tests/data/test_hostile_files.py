"""Every reader, given damaged and hostile files, under 1 GB of memory and 10 s of CPU time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

READERS = (
    "safetensors", "npz", "npy", "pt", "onnx", "h5", "keras", "gguf",
    "parquet", "corpus.parquet", "corpus.jsonl", "corpus.csv", "csv", "curve.csv",
)  # fmt: skip

NEEDS = {"pt": "torch", "onnx": "onnx", "h5": "h5py", "keras": "h5py", "gguf": "gguf"}
NEEDS |= {"parquet": "pyarrow", "corpus.parquet": "pyarrow"}


@pytest.mark.parametrize("reader", READERS)
def test_mutations_of_a_file_are_read_or_refused(tmp_path, reader):
    if reader in NEEDS:
        pytest.importorskip(NEEDS[reader])
    run_bounded(tmp_path, "mutations", reader)


# Each file is small, and took gigabytes or did not end before its sizes were compared.
HOSTILE = (
    "text_as_shape", "long_numbers", "nested_lists", "counts_of_gguf", "elements_of_gguf",
    "repeated_texts", "texts_of_a_table", "sizes_of_a_curve", "steps_of_zero", "packed_zeros",
    "unwritten_array",
)  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_small_file_takes_little(tmp_path, case):
    needs = {"nested_lists": "torch", "steps_of_zero": "torch", "counts_of_gguf": "gguf"}
    needs |= {
        "repeated_texts": "pyarrow",
        "texts_of_a_table": "pyarrow",
        "unwritten_array": "h5py",
    }
    needs |= {"elements_of_gguf": "gguf"}
    if case in needs:
        pytest.importorskip(needs[case])
    assert run_bounded(tmp_path, "hostile", case) == "refused"


def run_bounded(tmp_path: Path, *words: str) -> str:
    """Run a case in its own process; raise if it takes more than 1 GB or 10 s of CPU time."""
    program = Path(__file__).with_name("hostile_files.py")
    done = subprocess.run(
        [sys.executable, str(program), *words], cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["seconds"] < 10, found
    assert found["bytes"] < 1e9, found
    return str(found["answer"])
