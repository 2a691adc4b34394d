"""Write damaged or hostile files, read them, and print the time and the memory that this took."""

from __future__ import annotations

import argparse
import json
import random
import resource
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from solvable.data.readers import read_raw
from solvable.data.weights.opening import open_weights
from solvable.errors import SolvableError
from solvable.forecast import LearningCurve, forecast
from solvable.retrieve.corpus import read_corpus

MUTATIONS = 200


def matrix(seed: int = 0, shape: tuple[int, ...] = (8, 64)) -> np.ndarray:
    """Return random numbers in single precision."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# --- valid files


def write(kind: str, path: Path) -> None:
    """Write a valid file of a kind."""
    arrays = {"a.weight": matrix(0), "b.weight": matrix(1, (5, 7))}
    rows = [{"query": f"word {k}", "document": f"text {k} " * 3, "id": str(k)} for k in range(30)]
    if kind == "safetensors":
        from safetensors.numpy import save_file

        arrays |= {"moe.up": matrix(2, (3, 5, 7)), "l.lora_A.weight": matrix(3, (2, 7))}
        arrays |= {"l.lora_B.weight": matrix(4, (5, 2)), "q.weight_scale": matrix(5, (8, 1))}
        codes = {
            "q.weight": np.ones((8, 6), np.int8),
            "q.weight_zero_point": np.ones((8, 1), np.int8),
        }
        save_file(arrays | codes, path, metadata={"heads": "4"})
        settings = {"lora_alpha": 4, "alpha_pattern": {"l": 2}}
        path.with_name("adapter_config.json").write_text(json.dumps(settings))
    elif kind == "npz":
        np.savez_compressed(path, **arrays)
    elif kind == "npy":
        np.save(path, arrays["a.weight"])
    elif kind == "pt":
        import torch

        state = {name: torch.from_numpy(array) for name, array in arrays.items()}
        module = torch.nn.Sequential(torch.nn.Linear(2, 2))
        beside = {"args": argparse.Namespace(lr=0.1), "best": np.float64(1), "ema": module}
        torch.save({"model": state, "optimizer": {"state": {0: state}}, **beside}, path)
    elif kind == "onnx":
        import onnx
        from onnx import helper, numpy_helper

        tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
        inner = helper.make_graph([], "inner", [], [], tensors)
        node = helper.make_node("If", ["flag"], [], then_branch=inner, else_branch=inner)
        onnx.save(helper.make_model(helper.make_graph([node], "g", [], [], tensors)), path)
    elif kind in ("h5", "keras"):
        import h5py

        with h5py.File("inner.h5", "w") as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array, compression="gzip")
        data = Path("inner.h5").read_bytes()
        if kind == "h5":
            path.write_bytes(data)
        else:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("model.weights.h5", data)
    elif kind == "gguf":
        import gguf

        writer = gguf.GGUFWriter(path, "llama")
        writer.add_head_count(4)
        writer.add_array("tokenizer.ggml.tokens", ["a", "bc", "def"])
        for name, array in arrays.items():
            writer.add_tensor(name, array)
        for part in ("header", "kv_data", "tensors"):
            getattr(writer, f"write_{part}_to_file")()
        writer.close()
    elif kind in ("parquet", "corpus.parquet"):
        import pyarrow
        from pyarrow import parquet

        table = {"x": list(range(30)), **{name: [row[name] for row in rows] for name in rows[0]}}
        parquet.write_table(pyarrow.table(table), path)
    elif kind == "corpus.jsonl":
        path.write_text("\n".join(json.dumps(row | {"negatives": ["no"]}) for row in rows))
    elif kind in ("corpus.csv", "csv"):
        path.write_text("query,document,x\n" + "\n".join(f"a {k},b {k},{k}" for k in range(30)))
    elif kind == "curve.csv":
        path.write_text("n,error\n" + "\n".join(f"{2**k},{2.0**-k}" for k in range(3, 9)))


def read(path: Path) -> None:
    """Read everything in a file."""
    if path.name.startswith("curve"):
        LearningCurve.from_csv(path)
    elif path.name.startswith("corpus"):
        read_corpus(path, queries=False)
    elif path.suffix in (".parquet", ".csv"):
        for part in read_raw(path, None, required=False).parts:
            part.read()
    else:
        for key in (None, "model", "ema"):
            if key and path.suffix != ".pt":
                continue
            for stored in open_weights(path, key).arrays:
                try:
                    stored.read()
                except SolvableError:
                    continue


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with a few random changes."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(changed))
        # Headers stand at the ends of most formats.
        if rng.random() < 0.6:
            place = rng.choice((place % 300, -1 - place % 300)) % len(changed)
        kind = rng.randrange(6)
        if kind == 0:
            changed[place] = rng.randrange(256)
        elif kind == 1:
            size = rng.choice((1, 2, 4, 8))
            value = rng.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1))
            changed[place : place + size] = struct.pack("<Q", value)[:size]
        elif kind == 2:
            changed[place : place + 1] = bytes(str(rng.choice((9, 99999999, 10**15, -1))), "ascii")
        elif kind == 3:
            del changed[place : place + rng.randrange(1, 20)]
        elif kind == 4:
            changed[place:place] = changed[place : place + rng.randrange(1, 60)]
        else:
            del changed[max(place, 1) :]
        if not changed:
            break
    return bytes(changed)


def mutations(kind: str) -> str:
    """Read mutations of a valid file; only errors that are meant for users may be raised."""
    name = kind if "." in kind else f"w.{kind}"
    path = Path(name)
    write(kind, path)
    read(path)
    data, rng = path.read_bytes(), random.Random(0)
    refused = 0
    for number in range(MUTATIONS):
        # A new name each time, because readers keep open files by name and time.
        other = path.with_name(name.replace(".", f"{number}.", 1))
        other.write_bytes(mutated(data, rng))
        try:
            read(other)
        except SolvableError:
            refused += 1
        other.unlink()
    return str(refused)


# --- hostile files


def header(table: object, data: bytes = b"") -> Path:
    """Write a safetensors file with this header."""
    text = json.dumps(table).encode() if not isinstance(table, bytes) else table
    path = Path("w.safetensors")
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def text_as_shape() -> Path:
    """Shape of a text and a number, whose product is a text of 3 GB."""
    entry = {"dtype": "F32", "shape": ["x", 3_000_000_000], "data_offsets": [0, 4]}
    return header({"a": entry}, bytes(4))


def long_numbers() -> Path:
    """Shape of numbers of 4,200 digits, whose product has millions."""
    side = "9" * 4200
    shape = ",".join([side] * 3000)
    entry = f'{{"a": {{"dtype": "F32", "shape": [{shape}], "data_offsets": [0, 4]}}}}'
    return header(entry.encode(), bytes(4))


def nested_lists() -> Path:
    """Lists that hold another list four times, 19 deep: 4^19 paths to one tensor."""
    import torch

    inner: object = [torch.zeros(3, 3)]
    for _ in range(19):
        inner = [inner] * 4
    torch.save({"a": inner, "b": torch.zeros(2, 2)}, "w.pt")
    return Path("w.pt")


def steps_of_zero() -> Path:
    """Tensor of 4 GB on one stored number."""
    import torch

    torch.save({"a": torch.zeros(1).expand(40_000, 25_000)}, "w.pt")
    return Path("w.pt")


def counts_of_gguf() -> Path:
    """60 bytes that announce 2^40 fields."""
    Path("w.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2**40) + bytes(36))
    return Path("w.gguf")


def elements_of_gguf() -> Path:
    """60 bytes with an array that announces 2^40 bytes."""
    field = struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 0, 2**40) + bytes(11)
    Path("w.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + field)
    return Path("w.gguf")


def repeated_texts() -> Path:
    """One text of 10 kB in 370,000 rows: 3.7 GB in a file of 3 kB."""
    import pyarrow
    from pyarrow import parquet

    places = pyarrow.array(np.zeros(370_000, dtype=np.int32))
    column = pyarrow.DictionaryArray.from_arrays(places, ["x" * 10_000])
    parquet.write_table(pyarrow.table({"document": column}), "corpus.parquet")
    return Path("corpus.parquet")


def texts_of_a_table() -> Path:
    """The same text as a column of a table."""
    repeated_texts().rename("w.parquet")
    return Path("w.parquet")


def sizes_of_a_curve() -> Path:
    """20,000 distinct sizes, whose covariance takes 3 GB."""
    rows = "\n".join(f"{k},{1 / k}" for k in range(1, 20_001))
    Path("curve.csv").write_text(f"n,error\n{rows}\n")
    return Path("curve.csv")


def packed_zeros() -> Path:
    """Member of an archive that announces 3 GB and has a few bytes."""
    data = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (400000000,)}"
    )
    data = data.ljust(127) + b"\n"
    with zipfile.ZipFile("w.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", data)
    whole = bytearray(Path("w.npz").read_bytes())
    central = whole.index(b"PK\x01\x02")
    whole[central + 24 : central + 28] = struct.pack("<I", 3_200_000_128)
    Path("w.npz").write_bytes(whole)
    return Path("w.npz")


def unwritten_array() -> Path:
    """HDF5 array of 3 GB of which no entry is stored."""
    import h5py

    with h5py.File("w.h5", "w") as file:
        file.create_dataset("a", shape=(30_000, 100_000), dtype="i1", chunks=(1000, 1000))
    return Path("w.h5")


def hostile(case: str) -> str:
    """Read a hostile file; return whether it, or its array "a", was refused."""
    makers: dict[str, Callable[[], Path]] = {
        maker.__name__: maker
        for maker in (
            text_as_shape, long_numbers, nested_lists, steps_of_zero, counts_of_gguf,
            elements_of_gguf, repeated_texts, texts_of_a_table, sizes_of_a_curve, packed_zeros,
            unwritten_array,
        )
    }  # fmt: skip
    path = makers[case]()
    try:
        if case == "sizes_of_a_curve":
            forecast(LearningCurve.from_csv(path))
        elif path.name in ("corpus.parquet", "w.parquet"):
            read(path)
        else:
            arrays = {stored.name: stored for stored in open_weights(path).arrays}
            if case == "nested_lists":
                # All containers were visited once; the tensors are read.
                assert len(arrays) == 2
                return "refused"
            arrays["a"].read()
    except SolvableError:
        return "refused"
    return "read"


if __name__ == "__main__":
    before = resource.getrusage(resource.RUSAGE_SELF)
    # Address space is limited only so that a failure does not stop the machine.
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30, hard))
    start = time.process_time()
    answer = {"mutations": mutations, "hostile": hostile}[sys.argv[1]](sys.argv[2])
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss
    print(
        json.dumps({"answer": answer, "seconds": time.process_time() - start, "bytes": 1024 * used})
    )
