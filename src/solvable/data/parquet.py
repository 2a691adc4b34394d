"""Read Parquet files, one row group at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.raw_data import Part, RawData, choose_target, text_column
from solvable.data.table import Table, refuse_duplicates
from solvable.errors import InvalidData
from solvable.memory import gigabytes
from solvable.numpy_files import check_unpacked
from solvable.paths import error_line
from solvable.plots.words import quoted_names

MOST_UNPACKED = 100  # texts may take this many times the size of their file, and 100 MB more


def open_parquet(path: Path) -> Any:
    """Open a file whose texts are read as dictionaries: a repeated text is held once."""
    import pyarrow as arrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            columns = [file.schema.column(place) for place in range(len(file.schema))]
        texts = [one.path for one in columns if one.physical_type == "BYTE_ARRAY"]
        return parquet.ParquetFile(path, read_dictionary=texts)
    except (arrow.ArrowException, OSError, ValueError) as error:  # names that are not UTF-8
        why = error_line(error)
        raise InvalidData(
            f"{path} is damaged or not a Parquet file ({why}). Write it again."
        ) from error


def text_bytes(column: Any) -> int:
    """Return the bytes of all texts in a column, each repetition counted."""
    from pyarrow import compute, types

    total = 0
    for chunk in getattr(column, "chunks", [column]):
        while types.is_list(chunk.type) or types.is_large_list(chunk.type):
            chunk = chunk.flatten()
        if not types.is_dictionary(chunk.type):
            total += chunk.nbytes
        elif types.is_string(chunk.type.value_type) or types.is_binary(chunk.type.value_type):
            lengths = compute.binary_length(chunk.dictionary)
            total += compute.sum(lengths.take(chunk.indices)).as_py() or 0
    return total


def check_texts(size: int, path: Path) -> None:
    """Raise if the texts of a file take far more than the file: a damaged or hostile file."""
    most = 1e8 + MOST_UNPACKED * path.stat().st_size
    if size > most:
        raise InvalidData(
            f"{path} has {gigabytes(path.stat().st_size)}, and its texts unpack to {gigabytes(size)} or "
            f"more; allowed: {gigabytes(most)}. Remove repeated rows."
        )


class ParquetFile:
    """Parquet file whose footer is read once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the path is sent to other processes, as an open file cannot be.
        return ParquetFile, (self.path,)

    @cached_property
    def handle(self) -> Any:
        """Return the open file."""
        return open_parquet(self.path)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Kind of each column: "number", "text" or the name of an unusable type."""
        schema = self.handle.schema_arrow
        refuse_duplicates(schema.names)
        return {field.name: _kind(field.type) for field in schema}

    def read(self, group: int, columns: Sequence[str]) -> dict[str, np.ndarray]:
        """Read the given columns of one row group."""
        import pyarrow as arrow

        rows = self.handle.metadata.row_group(group).num_rows
        # Equal numbers take no place in a file, so that a few bytes may announce any number of rows.
        check_unpacked(8.0 * rows * len(columns), f"{self.path}, row group {group},")
        try:
            table = self.handle.read_row_group(group, columns=list(columns), use_threads=False)
            texts = [table.column(name) for name in columns if self.kinds[name] == "text"]
            check_texts(sum(text_bytes(column) for column in texts), self.path)
            return {name: _to_numpy(table.column(name), self.kinds[name]) for name in columns}
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InvalidData(
                f"{self.path} is damaged in row group {group} ({error}). Write it again."
            ) from error


@dataclass(frozen=True)
class RowGroup:
    """Rows of a Parquet file that are read together."""

    file: ParquetFile
    group: int
    n_rows: int
    columns: tuple[str, ...]  # names of the columns without the target
    target_name: str  # name of the target; empty if there is no target

    def read(self, columns: Sequence[str] | None = None) -> tuple[Table, np.ndarray | None]:
        """Return the requested (or all) columns other than the target, and the target or None."""
        names = self.columns if columns is None else tuple(columns)
        wanted = [*names, self.target_name] if self.target_name else list(names)
        cells = self.file.read(self.group, wanted)
        values = cells.pop(self.target_name) if self.target_name else None
        numeric = tuple(name for name in names if self.file.kinds[name] == "number")
        texts = {name: cells[name] for name in names if name not in numeric}
        dtype = np.result_type(np.float32, *(cells[name].dtype for name in numeric))
        matrix = np.empty((self.n_rows, len(numeric)), dtype=dtype)
        for position, name in enumerate(numeric):
            matrix[:, position] = cells[name]
        return Table(matrix, numeric, texts, names), values


def read_parquet(
    paths: Sequence[Path], target: str | None = None, *, required: bool = True
) -> RawData:
    """Read the row groups of one file, or of many files with the same columns."""
    files = [ParquetFile(path) for path in paths]
    kinds = files[0].kinds
    for file in files[1:]:
        if file.kinds != kinds:
            odd = sorted(dict(file.kinds.items() ^ kinds.items()))
            raise InvalidData(
                f"{file.path.name} and {files[0].path.name} differ in {quoted_names(odd)}; allowed: the "
                "same columns of the same types in every file."
            )
    chosen, notes = choose_target(list(kinds), target, required=required, where=str(paths[0]))
    if chosen and kinds[chosen] not in ("number", "text"):
        raise InvalidData(
            f"target {chosen!r} holds {kinds[chosen]}; allowed: numbers or text. Choose another target."
        )
    used = tuple(name for name, kind in kinds.items() if kind in ("number", "text"))
    columns = tuple(name for name in used if name != chosen)
    for name, kind in kinds.items():
        if name not in used:
            notes = (*notes, f"dropped column {name!r}: it holds {kind}")
    parts: list[Part] = []
    for file in files:
        metadata = file.handle.metadata
        for group in range(metadata.num_row_groups):
            n_rows = metadata.row_group(group).num_rows
            if n_rows:
                parts.append(RowGroup(file, group, n_rows, columns, chosen))
    if not parts:
        raise InvalidData(f"{paths[0]} has no rows; allowed: at least one row. Check the file.")
    return RawData(tuple(parts), chosen, None, notes)


def _kind(type_: Any) -> str:
    """Return the kind of a column from its Arrow type."""
    from pyarrow import types

    if types.is_dictionary(type_):
        return _kind(type_.value_type)
    kinds = ("integer", "floating", "boolean", "decimal", "null")
    if any(getattr(types, f"is_{kind}")(type_) for kind in kinds):
        return "number"
    if types.is_string(type_) or types.is_large_string(type_) or types.is_temporal(type_):
        return "text"
    return f"values of type {type_}"


def _to_numpy(column: Any, kind: str) -> np.ndarray:
    """Convert an Arrow column to numbers with NaN, or objects with None, for missing values."""
    import pyarrow as arrow
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind == "text":
        return text_column(column.cast(arrow.string()).to_pylist())
    if types.is_null(column.type) or types.is_decimal(column.type):
        column = column.cast(arrow.float64())
    elif types.is_boolean(column.type):
        column = column.cast(arrow.uint8())
    return np.asarray(column.to_numpy())
