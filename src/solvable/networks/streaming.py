"""Fits to samples that are read in chunks: manual, from streams, parallel, resumable."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.base import is_classifier, is_regressor

from solvable.arrays import Array, Source, as_source, is_tensor, to_numpy
from solvable.errors import InvalidData, InvalidParameter
from solvable.fitting.described_arrays import read_described, under, write_described
from solvable.fitting.inputs import validate_data
from solvable.networks.base import NeuralLoFiBase, labels_are_real
from solvable.networks.blocks import LabelCode
from solvable.networks.stored_layers import network_from_parts, network_parts
from solvable.networks.stream_sums import classes_from_arrays, classes_to_arrays
from solvable.networks.streamed_fit import LabelKind, PassByPass, Stage
from solvable.operators.feature_map import floating

Progress = Callable[[str, int, int], None]
"""Callback that receives the stage, the number of processed rows, and the number of all rows."""

CHECKPOINT_FORMAT = "solvable-lofi-checkpoint-3"  # name and version of the checkpoint format
PASS_STATE = (
    "rows",
    "stage",
    "block",
    "square",
    "base",
    "base_square",
)  # attributes that a checkpoint stores unchanged


class StreamingMixin(NeuralLoFiBase):
    """Methods to fit by chunks; blocks must have finite width."""

    _passes: PassByPass
    _sums: Any
    _first_row: int

    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None) -> Any:
        """Add a chunk of samples to the sums of the current pass.

        A network is fitted in several passes over the same samples in the same order: call this method
        for all chunks, then :meth:`advance`, and repeat until :meth:`advance` returns "done".
        :meth:`fit_stream` does both.
        """
        begun = hasattr(self, "_passes") and self._passes.stage != "done"
        X, y = validate_data(self, X, y, reset=not begun, dtype=[np.float64, np.float32], order="C")
        if not begun:
            self._begin(X.shape[1], y)
        announced = classes if self._passes.stage == "survey" else None
        self._passes.add(self._sums, X, y, self._first_row, classes=announced)
        self._first_row += len(X)
        return self

    def advance(self) -> Stage:
        """End the current pass; return the next purpose: "filter", "scale", "readout" or "done"."""
        if not hasattr(self, "_passes") or self._passes.stage == "done":
            raise InvalidData("there is nothing to advance; call partial_fit first.")
        passes = self._passes
        passes.finish(self._sums)
        self._first_row = 0
        if passes.stage == "done":
            self._finish(passes)
            del self._sums
        else:
            self._sums = passes.sums()
        return passes.stage

    def fit_stream(
        self,
        source: Any,
        y: Any = None,
        *,
        chunk_rows: int = 8192,
        workers: int = 1,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 10.0,
        progress: Progress | None = None,
    ) -> Any:
        """Fit to samples larger than memory."""
        stream = _labelled(source, y)
        if chunk_rows < 1 or workers < 1:
            raise InvalidParameter(
                f"chunk_rows is {chunk_rows} and workers is {workers}; allowed: at least 1."
            )
        first = next(iter(stream.chunks(1)), None)
        if first is None:
            raise InvalidData("the source has no rows; at least two are needed.")
        labels = [block for _, _, block in _first_rows(stream, 4096)]
        self._begin(stream.n_columns, np.concatenate(labels))
        self.n_features_in_ = stream.n_columns
        passes, sums, row = self._passes, self._sums, 0
        identity = {} if checkpoint is None else self._identity(stream, chunk_rows)
        keeper = _Keeper(checkpoint, checkpoint_seconds, identity)
        kept = keeper.load(passes)
        if kept is not None:
            sums, row = kept
        while not passes.is_done:
            for done in _summed(passes, sums, stream, row, chunk_rows, workers):
                if progress is not None:
                    progress(passes.stage, done, stream.n_samples)
                keeper.save(passes, sums, done)
            passes.finish(sums)
            row = 0
            if not passes.is_done:
                sums = passes.sums()
                keeper.save(passes, sums, 0)
        self._finish(passes)
        del self._sums
        keeper.remove()
        return self

    def _begin(self, n_columns: int, y: np.ndarray) -> None:
        """Start a fit; the estimator decides if labels are classes."""
        if self.scaling == "whitened":
            raise InvalidParameter(
                "scaling is 'whitened'; allowed for a stream: 'auto', 'columns', 'global' or 'none'. "
                "Only fit, with samples in memory, whitens columns."
            )
        readout = hasattr(self, "predict")
        # The default for few samples is a kernel, which is not available in a stream.
        settings = self._settings(None, n_columns, readout=readout)
        kind = LabelKind(
            self._labels_are_real(y), bool(self.centre_labels), self.label_map == "tanh"
        )
        self._passes = PassByPass(settings, kind, self.scaling, n_columns)
        self._sums = self._passes.sums()
        self._first_row = 0

    def _labels_are_real(self, y: np.ndarray) -> bool:
        if is_classifier(self) or is_regressor(self):
            return bool(is_regressor(self))
        return labels_are_real(y)

    def _finish(self, passes: PassByPass) -> None:
        self._keep(passes.result)
        code = cast(LabelCode, passes.code)
        if passes.kind.real:
            self._code = code
        elif hasattr(self, "predict"):
            self.classes_ = passes.classes

    def _identity(self, stream: Any, chunk_rows: int) -> dict[str, Any]:
        """Description that a checkpoint must match, from one pass over the samples."""
        parameters = {name: repr(value) for name, value in self.get_params(deep=False).items()}
        return {
            "estimator": type(self).__name__,
            "parameters": parameters,
            "n_samples": stream.n_samples,
            "n_columns": stream.n_columns,
            "data": _digest(stream, chunk_rows),
        }


class _Keeper:
    """Store a partly done fit at intervals, and restore it; without a path, do nothing."""

    def __init__(self, path: str | Path | None, seconds: float, identity: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.seconds = seconds
        self.identity = identity
        self.last = time.monotonic()

    def load(self, passes: PassByPass) -> tuple[Any, int] | None:
        if self.path is None or not self.path.exists():
            return None
        arrays, content = read_described(
            self.path, (CHECKPOINT_FORMAT,), "fit_stream(checkpoint=...)"
        )
        seen = content.get("identity")
        if seen != self.identity:
            raise InvalidData(
                f"{self.path} is the checkpoint of another fit, of {seen}; this fit is of "
                f"{self.identity}. Remove the file, or name another one."
            )
        return _restore(passes, arrays, content)

    def save(self, passes: PassByPass, sums: Any, row: int) -> None:
        if self.path is None or time.monotonic() - self.last < self.seconds:
            return
        arrays, content = _stored(passes, sums, row)
        write_described(self.path, arrays, {**content, "identity": self.identity})
        self.last = time.monotonic()

    def remove(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class _Labelled:
    """Combine two objects, one with samples and one with labels, into one stream."""

    def __init__(self, samples: Source, y: np.ndarray) -> None:
        self.samples = samples
        self.y = y
        self.n_samples = samples.n_samples
        self.n_columns = samples.n_columns

    def chunks(self, rows: int, start: int = 0) -> Iterator[tuple[slice, Any, np.ndarray]]:
        array = getattr(self.samples, "array", None)
        if array is not None:
            for low in range(start, self.n_samples, rows):
                part = slice(low, min(low + rows, self.n_samples))
                yield part, array[part], self.y[part]
            return
        for part, block in self.samples.chunks(rows):
            if part.stop <= start:
                continue
            skipped = max(0, start - part.start)
            kept = slice(part.start + skipped, part.stop)
            yield kept, block[skipped:], self.y[kept]


def _labelled(source: Any, y: Any) -> Any:
    if y is None:
        if not hasattr(source, "chunks"):
            raise InvalidData(
                "the labels are missing: give y, or a source whose chunks bring their labels."
            )
        return source
    samples = as_source(source)
    labels = to_numpy(y)
    if labels.shape != (samples.n_samples,):
        raise InvalidData(
            f"y has shape {labels.shape}; allowed: ({samples.n_samples},), one label per row."
        )
    return _Labelled(samples, labels)


def _first_rows(stream: Any, rows: int) -> Iterator[tuple[slice, Any, np.ndarray]]:
    for part, X, y in stream.chunks(rows):
        yield part, X, y
        if part.stop >= rows:
            return


def _digest(stream: Any, chunk_rows: int) -> str:
    """Digest of samples and labels, independent of the chunks."""
    samples, labels = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
    for _, X, y in stream.chunks(chunk_rows):
        samples.update(floats(to_numpy(X)).data)
        # NumPy's type of text labels depends on the longest label of the chunk.
        block = np.asarray(y)
        text = block.dtype.kind in "OUS"
        labels.update("\0".join([*map(str, block), ""]).encode() if text else block.tobytes())
    return samples.hexdigest() + labels.hexdigest()


def _summed(
    passes: PassByPass, sums: Any, stream: Any, row: int, chunk_rows: int, workers: int
) -> Iterator[int]:
    """Add all rows from ``row`` on, and yield the number of processed rows after each step."""
    if workers == 1:
        for part, X, y in stream.chunks(chunk_rows, start=row):
            passes.add(sums, floats(X), np.asarray(y), part.start)
            yield part.stop
        return
    from joblib import Parallel, delayed

    span = chunk_rows * 8  # rows that a worker sums up before it hands its sums over
    for low in range(row, stream.n_samples, span * workers):
        starts = range(low, min(low + span * workers, stream.n_samples), span)
        parts = Parallel(n_jobs=workers)(
            delayed(_sums_of)(
                passes, stream, start, min(start + span, stream.n_samples), chunk_rows
            )
            for start in starts
        )
        for arrays in parts:
            sums.merge(passes.sums_from(arrays))
        yield min(low + span * workers, stream.n_samples)


def _sums_of(
    passes: PassByPass, stream: Any, start: int, stop: int, chunk_rows: int
) -> dict[str, np.ndarray]:
    """Sums of the rows from ``start`` to ``stop``, in another process."""
    sums = passes.sums()
    for part, X, y in stream.chunks(chunk_rows, start=start):
        rows = min(part.stop, stop) - part.start
        if rows <= 0:
            break
        passes.add(sums, floats(X[:rows]), np.asarray(y)[:rows], part.start)
    return dict(sums.to_arrays())


def floats(X: Any) -> Array:
    """Keep float32 and float64, convert other types to float64; arrays in row order."""
    if is_tensor(X):
        return floating(X.detach() if hasattr(X, "detach") else X)
    array = np.asarray(X)
    kind = array.dtype if array.dtype in (np.float32, np.float64) else np.float64
    return np.ascontiguousarray(array, dtype=kind)


def _stored(
    passes: PassByPass, sums: Any, row: int
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """State from which a fit can continue: layers, sums of the current pass, number of rows."""
    arrays, layers, filters = network_parts(passes.layers, passes.reports)
    arrays |= {f"sums.{key}": value for key, value in sums.to_arrays().items()}
    arrays |= {f"labels.{key}": value for key, value in classes_to_arrays(passes.classes).items()}
    content: dict[str, Any] = {
        "format": CHECKPOINT_FORMAT,
        "layers": layers,
        "filters": filters,
        "row": row,
        "shape": list(passes.shape),
        **{name: getattr(passes, name) for name in PASS_STATE},
    }
    if passes.code is not None:
        arrays["labels.counts"] = passes.code.counts
        content["label"] = {
            name: getattr(passes.code, name) for name in ("mean", "deviation", "centre", "bounded")
        }
    return arrays, content


def _restore(
    passes: PassByPass, arrays: Mapping[str, np.ndarray], content: Mapping[str, Any]
) -> tuple[Any, int]:
    """Restore the stored state in a new fit of the same settings."""
    layers, reports = network_from_parts(arrays, content["layers"], content["filters"])
    passes.layers, passes.reports = layers, list(reports)
    labels = under(arrays, "labels.")
    passes.classes = classes_from_arrays(labels)
    if "label" in content:
        passes.code = LabelCode(labels["counts"], **content["label"])
    for name in PASS_STATE:
        setattr(passes, name, content[name])
    passes.shape = tuple(content["shape"])
    return passes.sums_from(under(arrays, "sums.")), int(content["row"])
