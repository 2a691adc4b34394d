"""Array namespaces, random streams, chunked sources, and checks of numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from solvable.errors import InvalidData, InvalidParameter, quoted
from solvable.numpy_files import open_npy
from solvable.paths import check_path

Array: TypeAlias = Any
"""Array of any library that follows the array API, such as a NumPy array or torch tensor."""

GENERATION_ROWS = 4096
"""Rows per block of a regenerated source; the samples depend on this number."""


def namespace(*arrays: Array) -> Any:
    """Return the array-API namespace that the arrays share.

    Parameters
    ----------
    *arrays : array
        Arrays of one library.

    Returns
    -------
    module
        Array-API-compatible namespace.

    Examples
    --------
    >>> namespace(np.zeros(2)).sum(np.ones(3))
    np.float64(3.0)
    """
    # fast path for NumPy arrays: ten times faster than the general look-up
    if all(type(array) is np.ndarray for array in arrays):
        return _numpy_namespace()
    from array_api_compat import array_namespace

    return array_namespace(*arrays)


@cache
def _numpy_namespace() -> Any:
    """Return NumPy under the function names of the array API."""
    from array_api_compat import numpy

    return numpy


def to_numpy(array: Array) -> np.ndarray:
    """Copy an array to a NumPy array on the host; return a NumPy array without a copy.

    Parameters
    ----------
    array : array
        NumPy array, torch tensor on any device, or another array-API array.

    Returns
    -------
    ndarray
        Array with the same values.

    Examples
    --------
    >>> to_numpy([1, 2])
    array([1, 2])
    """
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):
        return np.asarray(array.detach().cpu())
    if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        return np.from_dlpack(array)
    return np.asarray(array)


def is_tensor(array: Any) -> bool:
    """Return True for an array of a library other than NumPy, which may be on a device.

    Parameters
    ----------
    array : object
        Any object.

    Returns
    -------
    bool
        False for NumPy arrays and all other objects, such as lists and sources.
    """
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return False
    from array_api_compat import is_array_api_obj

    return bool(is_array_api_obj(array))


def as_on(array: np.ndarray, like: Array) -> Array:
    """Copy a host array to the library and device of another array; floats take its float type.

    Parameters
    ----------
    array : ndarray
        Values.
    like : array
        Array that defines library, device and float type.

    Returns
    -------
    array
        Array with the same values.
    """
    if isinstance(like, np.ndarray):
        return array.astype(like.dtype, copy=False) if array.dtype.kind == "f" else array
    from array_api_compat import device

    xp = namespace(like)
    kind = like.dtype if array.dtype.kind == "f" else None
    return xp.asarray(np.ascontiguousarray(array), dtype=kind, device=device(like))


def clipped(array: Array, low: float, high: float | None = None) -> Array:
    """Clip entries to a lower and an upper bound, without intermediate copies in any library.

    Parameters
    ----------
    array : array
        Values.
    low, high : float
        Bounds; ``high=None`` for no upper bound.

    Returns
    -------
    array
        New array.
    """
    if isinstance(array, np.ndarray):
        return np.clip(array, low, high)
    if hasattr(array, "clamp"):
        return array.clamp(low, high)
    return namespace(array).clip(array, low, high)


def random_stream(*key: int | str) -> np.random.Generator:
    """Make a counter-based random generator that depends on the key only.

    Streams with different keys are independent. A task, a replicate or a block of samples therefore
    draws the same numbers in any order of execution and on any machine.

    Parameters
    ----------
    *key : int or str
        Name of the stream, for example ``(seed, "teacher")``.

    Returns
    -------
    numpy.random.Generator
        Philox generator.

    Examples
    --------
    >>> bool(random_stream(0, "a").random() == random_stream(0, "a").random())
    True
    >>> bool(random_stream(0, "a").random() == random_stream(0, "b").random())
    False
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in key)
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.Generator(
        np.random.Philox(np.random.SeedSequence(int.from_bytes(digest[:16])))
    )


@runtime_checkable
class Source(Protocol):
    """Samples that can be read repeatedly in chunks of rows.

    Attributes
    ----------
    n_samples, n_columns : int
        Shape of the samples.
    dtype : numpy dtype or dtype of the array library
        Type of the entries.
    """

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        ...

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        ...

    @property
    def dtype(self) -> Any:
        """Type of the entries."""
        ...

    def chunks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Yield ``(slice, block)`` in order, each block with at most ``rows`` rows."""
        ...


@dataclass(frozen=True)
class ArraySource:
    """Samples in an array: in memory, memory-mapped, or on a GPU.

    Parameters
    ----------
    array : array of shape (n, d)
        Samples. They are not copied; a memory-mapped array is read chunk by chunk.

    Examples
    --------
    >>> [rows for rows, block in ArraySource(np.zeros((5, 2))).chunks(3)]
    [slice(0, 3, None), slice(3, 5, None)]
    """

    array: Array

    def __post_init__(self) -> None:
        if getattr(self.array, "ndim", None) != 2:
            raise InvalidData(
                "samples must be a two-dimensional array of shape (n, d); got shape "
                f"{tuple(getattr(self.array, 'shape', ()))}. Reshape with X.reshape(n, d)."
            )

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.array.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    @property
    def dtype(self) -> Any:
        """Type of the entries."""
        return self.array.dtype

    def chunks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Yield ``(slice, block)`` in order; the blocks are views."""
        for start in range(0, self.n_samples, rows):
            part = slice(start, min(start + rows, self.n_samples))
            yield part, self.array[part, :]


@dataclass(frozen=True)
class GeneratedSource:
    """Samples drawn again from their seed at each reading; only one block is in memory.

    Rows are drawn in fixed blocks of :data:`GENERATION_ROWS`, each from its own stream, so the samples
    do not depend on the chunk size of the reader.

    Parameters
    ----------
    draw : callable
        Function ``draw(rows, rng)`` that returns an array of shape (rows, d).
    n_samples, n_columns : int
        Shape of the samples.
    seed : int
        Seed of the samples.
    dtype : numpy dtype
        Type of the entries that ``draw`` returns.

    Examples
    --------
    >>> source = GeneratedSource(lambda rows, rng: rng.standard_normal((rows, 2)), 5000, 2, seed=0)
    >>> sum(len(block) for rows, block in source.chunks(1000))
    5000
    """

    draw: Callable[[int, np.random.Generator], np.ndarray]
    n_samples: int
    n_columns: int
    seed: int
    dtype: Any = np.float64

    def chunks(self, rows: int, *, start: int = 0) -> Iterator[tuple[slice, Array]]:
        """Yield ``(slice, block)`` in order, at most ``rows`` rows of one generated block each.

        Blocks that end at or before row ``start`` are not drawn.
        """
        for block in range(start // GENERATION_ROWS, -(-self.n_samples // GENERATION_ROWS)):
            first = block * GENERATION_ROWS
            # Always draw whole blocks, so earlier rows do not depend on n_samples.
            values = self.draw(GENERATION_ROWS, random_stream(self.seed, "samples", block))
            stop = min(first + GENERATION_ROWS, self.n_samples)
            for low in range(first, stop, rows):
                high = min(low + rows, stop)
                yield slice(low, high), values[low - first : high - first]


def as_source(samples: Array | Source | str | Path) -> Source:
    """Make a chunked source from an array, a ``.npy`` file, or a source.

    Parameters
    ----------
    samples : array of shape (n, d), path to a ``.npy`` file, or Source
        Samples. A file is memory-mapped and never unpickled.

    Returns
    -------
    Source
        Source of the same samples.

    Raises
    ------
    InvalidData
        If the array is not two-dimensional or the file is not a plain ``.npy`` array.

    Examples
    --------
    >>> as_source(np.zeros((4, 3))).n_columns
    3
    """
    if isinstance(samples, (str, Path)):
        return ArraySource(open_npy(check_path(samples)))
    if isinstance(samples, Source):
        return samples
    return ArraySource(samples)


def check_positive(**values: float) -> None:
    """Raise :class:`InvalidParameter` unless every value is a finite number above 0.

    Parameters
    ----------
    **values : float
        Values; each keyword is the parameter name that the message shows.

    Examples
    --------
    >>> check_positive(samples=10)
    >>> check_positive(samples=0)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: samples is 0; allowed: a finite number above 0.
    """
    for name, value in values.items():
        if not (is_real(value) and np.isfinite(value) and value > 0):
            raise InvalidParameter(f"{name} is {value}; allowed: a finite number above 0.")


def is_integer(value: Any, minimum: int = 1, maximum: int | None = None) -> bool:
    """Return True if a value is an integer in a range; False for booleans.

    Parameters
    ----------
    value : object
        Any object.
    minimum, maximum : int
        Range, both ends included; ``maximum=None`` for no upper end.

    Returns
    -------
    bool
        True for integers of Python and NumPy in the range.

    Examples
    --------
    >>> is_integer(np.int64(3)), is_integer(True), is_integer(2.0)
    (True, False, False)
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return bool(whole and value >= minimum and (maximum is None or value <= maximum))


def is_real(value: Any) -> bool:
    """Return True if a value is a real number, finite or not; False for booleans.

    Parameters
    ----------
    value : object
        Any object.

    Returns
    -------
    bool
        True for integers and floats of Python and NumPy.

    Examples
    --------
    >>> is_real(np.float32(0.5)), is_real(False), is_real("1")
    (True, False, False)
    """
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> None:
    """Raise :class:`InvalidParameter` unless the value is an integer in the range.

    Parameters
    ----------
    name : str
        Parameter name that the message shows.
    value : object
        Any object; booleans are refused.
    minimum, maximum : int
        Range, both ends included; ``maximum=None`` for no upper end.

    Examples
    --------
    >>> check_integer("features", 0, 1)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: features is 0; allowed: an integer of at least 1.
    """
    if not is_integer(value, minimum, maximum):
        allowed = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise InvalidParameter(f"{name} is {quoted(value)}; allowed: an integer {allowed}.")


def check_real(name: str, value: Any, minimum: float, *, also: str = "") -> None:
    """Raise :class:`InvalidParameter` unless the value is finite and at least ``minimum``.

    Parameters
    ----------
    name : str
        Parameter name that the message shows.
    value : object
        Any object; booleans are refused.
    minimum : float
        Smallest allowed value.
    also : str
        Other allowed values, appended to the message.

    Examples
    --------
    >>> check_real("decay", -1.0, 0.0)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: decay is -1.0; allowed: a finite number of at least 0.
    """
    if not is_real(value) or not np.isfinite(value) or value < minimum:
        raise InvalidParameter(
            f"{name} is {value!r}; allowed: a finite number of at least {minimum:g}{also}."
        )
