"""Copy of a safetensors file with other entries, or with factors in the place of an array."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, BinaryIO

from solvable.data.weights.safetensors_file import open_safetensors, read_header
from solvable.data.weights.stored import shown_name
from solvable.data.weights.writing.replacement import (
    LEFT,
    RIGHT,
    Factors,
    Replacement,
    stored_bytes,
)


def copy_safetensors(path: Path, target: Path, changes: dict[str, Replacement]) -> None:
    """Write a copy; header and other arrays stay byte for byte unless factors change the header."""
    header, length, _ = read_header(path)
    stored = {array.name: array for array in open_safetensors(path).arrays}
    done: dict[str, list[tuple[str, tuple[int, ...], bytes]]] = {}
    for name, entry in header.items():
        change = changes.pop(shown_name(name), None) if name != "__metadata__" else None
        if change is None:
            continue
        new = change(stored[name].read())
        if isinstance(new, Factors):
            parts = [(name + LEFT, new.left), (name + RIGHT, new.right)]
        else:
            parts = [(name, new)]
        kind = entry["dtype"]
        done[name] = [(part, a.shape, stored_bytes(a, kind, name)) for part, a in parts]
    if any(len(parts) > 1 for parts in done.values()):
        _rebuilt(path, target, header, 8 + length, done)
        return
    shutil.copyfile(path, target)
    with target.open("r+b") as stream:
        for name, ((_, _, data),) in done.items():
            stream.seek(8 + length + header[name]["data_offsets"][0])
            stream.write(data)


def _rebuilt(
    path: Path,
    target: Path,
    header: dict[str, Any],
    offset: int,
    done: dict[str, list[tuple[str, tuple[int, ...], bytes]]],
) -> None:
    """Write the file with a new header; arrays keep their order."""
    table: dict[str, Any] = {}
    if "__metadata__" in header:
        table["__metadata__"] = header["__metadata__"]
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    order = sorted(entries, key=lambda name: entries[name]["data_offsets"])
    place = 0
    sizes: dict[str, dict[str, Any]] = {}
    for name in order:
        begin, end = entries[name]["data_offsets"]
        parts = done.get(name)
        if parts is None:
            sizes[name] = {name: entries[name] | {"data_offsets": [place, place + end - begin]}}
            place += end - begin
            continue
        sizes[name] = {}
        for part, shape, data in parts:
            kind = entries[name]["dtype"]
            where = [place, place + len(data)]
            sizes[name][part] = {"dtype": kind, "shape": list(shape), "data_offsets": where}
            place += len(data)
    for name in entries:  # names keep the order of the header
        table |= sizes[name]
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    text += b" " * (-len(text) % 8)  # the format aligns the data to eight bytes
    with path.open("rb") as source, target.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            begin, end = entries[name]["data_offsets"]
            if name in done:
                for _, _, data in done[name]:
                    stream.write(data)
            else:
                source.seek(offset + begin)
                _copy_bytes(source, stream, end - begin)


def _copy_bytes(source: BinaryIO, target: BinaryIO, count: int) -> None:
    step = 1 << 24
    while count > 0:
        data = source.read(min(step, count))
        if not data:
            return
        target.write(data)
        count -= len(data)
