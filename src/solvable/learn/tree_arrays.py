"""Boosted trees of scikit-learn as arrays, evaluated with NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

PAIRS = 1_000_000
"""Largest number of pairs of a row and a tree that are followed at a time."""

KINDS_OF_NUMBERS = dict.fromkeys(("missing_left", "leaf", "goes_left", "known"), "b")
KINDS_OF_NUMBERS |= dict.fromkeys(("baseline", "threshold", "value", "categories"), "f")
"""Arrays of truth values and of real numbers; the others hold whole numbers."""


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """Nodes of all trees in one list; children have larger numbers than their parent."""

    baseline: np.ndarray  # output without trees, shape (C,)
    roots: np.ndarray  # number of each tree's first node, shape (steps, C)
    feature: np.ndarray  # column that a node compares, shape (nodes,)
    threshold: np.ndarray  # rows go left if the column is at most this
    left: np.ndarray  # number of the left child; that of the node itself for a leaf
    right: np.ndarray
    missing_left: np.ndarray  # True if rows without a value go left
    value: np.ndarray  # contribution of a leaf to the output
    leaf: np.ndarray
    bitset: np.ndarray  # row of `goes_left` of a split of categories; -1 for a split of numbers
    goes_left: np.ndarray  # codes that go left, shape (splits, 256)
    known: np.ndarray  # codes that occurred in training, for each column, shape (d, 256)
    order: np.ndarray  # column of the input at each place of the columns that the trees compare
    categories: (
        np.ndarray
    )  # (column, value) of each category, sorted; the place in a column is the code

    @classmethod
    def of(cls, model: Any) -> TreeArrays:
        """Copy the nodes of a fitted HistGradientBoosting estimator."""
        trees = [tree for step in model._predictors for tree in step]
        nodes = [tree.nodes for tree in trees]
        starts = np.cumsum([0, *map(len, nodes)])
        sets = np.cumsum([0, *(len(tree.raw_left_cat_bitsets) for tree in trees)])
        joined = {
            name: np.concatenate([node[name] for node in nodes]) for name in nodes[0].dtype.names
        }
        leaf = joined["is_leaf"].astype(bool)
        first = np.repeat(starts[:-1], np.diff(starts))
        itself = np.arange(len(leaf))
        split = joined["is_categorical"].astype(bool) & ~leaf
        bitset = joined["bitset_idx"] + np.repeat(sets[:-1], np.diff(starts))
        bits = [tree.raw_left_cat_bitsets for tree in trees if len(tree.raw_left_cat_bitsets)]
        return cls(
            baseline=np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1),
            roots=starts[:-1].reshape(len(model._predictors), -1),
            feature=np.where(leaf, 0, joined["feature_idx"]).astype(np.int64),
            threshold=joined["num_threshold"].astype(np.float64),
            left=np.where(leaf, itself, joined["left"] + first).astype(np.int64),
            right=np.where(leaf, itself, joined["right"] + first).astype(np.int64),
            missing_left=joined["missing_go_to_left"].astype(bool),
            value=joined["value"].astype(np.float64),
            leaf=leaf,
            bitset=np.where(split, bitset, -1).astype(np.int64),
            goes_left=_bits(np.concatenate(bits)) if bits else np.zeros((0, 256), dtype=bool),
            **_columns(model),
        )

    @classmethod
    def mean(cls, models: Sequence[TreeArrays]) -> TreeArrays:
        """Join the trees of several models of the same columns, so that outputs are averaged."""
        first, nodes = models[0], np.cumsum([0, *(one.leaf.size for one in models)])
        sets = np.cumsum([0, *(len(one.goes_left) for one in models)])
        parts = {
            name: np.concatenate([getattr(one, name) for one in models])
            for name in ("feature", "threshold", "missing_left", "leaf", "goes_left")
        }
        for name in ("roots", "left", "right"):
            shifted = [
                getattr(one, name) + start for one, start in zip(models, nodes, strict=False)
            ]
            parts[name] = np.concatenate(shifted)
        bitsets = [
            np.where(one.bitset < 0, -1, one.bitset + start)
            for one, start in zip(models, sets, strict=False)
        ]
        return replace(
            first,
            baseline=np.mean([one.baseline for one in models], axis=0),
            value=np.concatenate([one.value for one in models]) / len(models),
            bitset=np.concatenate(bitsets),
            **parts,
        )

    @classmethod
    def checked(cls, arrays: Mapping[str, np.ndarray]) -> TreeArrays:
        """Make trees from stored arrays; raise ValueError if they do not describe trees."""
        found = cls(**{field.name: arrays[field.name] for field in fields(cls)})
        count, d = found.leaf.size, found.order.size
        shapes = {
            "feature": (count,), "threshold": (count,), "left": (count,), "right": (count,),
            "missing_left": (count,), "value": (count,), "bitset": (count,), "leaf": (count,),
            "roots": (found.roots.shape[0], found.baseline.size), "order": (d,),
            "goes_left": (len(found.goes_left), 256), "known": (d, 256),
            "categories": (len(found.categories), 2), "baseline": (found.baseline.size,),
        }  # fmt: skip
        for name, shape in shapes.items():
            seen = getattr(found, name)
            if seen.shape != shape or seen.dtype.kind != KINDS_OF_NUMBERS.get(name, "i"):
                raise ValueError(f"{name} has shape {seen.shape} and type {seen.dtype}")
        inner = np.flatnonzero(~found.leaf)
        # Children behind their parents exclude circles, so that every row reaches a leaf.
        for name, low, high in (
            ("left", inner + 1, count), ("right", inner + 1, count), ("feature", 0, d),
            ("bitset", -1, len(found.goes_left)),
        ):  # fmt: skip
            numbers = getattr(found, name)[inner]
            if np.any(numbers < low) or np.any(numbers >= high):
                raise ValueError(f"{name} is out of range")
        for name, high in (("roots", count), ("order", d)):
            numbers = getattr(found, name)
            if np.any(numbers < 0) or np.any(numbers >= high):
                raise ValueError(f"{name} is out of range")
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_columns(self) -> int:
        """Number of columns of the input."""
        return int(self.order.size)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the sum of the baseline and of all trees, shape (n, C)."""
        X = self._ordered(np.asarray(X, dtype=np.float64))
        steps, outputs = self.roots.shape
        found = np.tile(self.baseline, (len(X), 1))
        size = max(1, PAIRS // max(1, steps * outputs))
        for start in range(0, len(X), size):
            part = X[start : start + size]
            leaves = self._leaves(part)
            found[start : start + size] += (
                self.value[leaves].reshape(len(part), steps, outputs).sum(1)
            )
        return found

    def _leaves(self, X: np.ndarray) -> np.ndarray:
        """Return the leaf of each row in each tree, shape (n, trees)."""
        at = np.tile(self.roots.reshape(-1), len(X))
        rows = np.repeat(np.arange(len(X)), self.roots.size)
        moving = np.flatnonzero(~self.leaf[at])
        while moving.size:
            node = at[moving]
            column = self.feature[node]
            x = X[rows[moving], column]
            with np.errstate(invalid="ignore"):
                left = x <= self.threshold[node]
            left = np.where(np.isnan(x), self.missing_left[node], left)
            sets = self.bitset[node]
            split = np.flatnonzero((sets >= 0) & ~np.isnan(x))
            if split.size:
                code = np.clip(x[split], 0, 255).astype(np.int64)
                inside = self.goes_left[sets[split], code]
                seen = self.known[column[split], code] & (x[split] >= 0)
                # A category that no training row has is treated as missing.
                left[split] = np.where(inside | seen, inside, self.missing_left[node[split]])
            at[moving] = np.where(left, self.left[node], self.right[node])
            moving = moving[~self.leaf[at[moving]]]
        return at.reshape(len(X), -1)

    def _ordered(self, X: np.ndarray) -> np.ndarray:
        """Bring the columns into the order of the trees, and replace categories by their codes."""
        if not self.categories.size:
            return X
        X = X[:, self.order].copy()
        for column in np.unique(self.categories[:, 0]).astype(np.int64):
            values = self.categories[self.categories[:, 0] == column, 1]
            x = X[:, column]
            code = np.clip(np.searchsorted(values, x), 0, len(values) - 1)
            X[:, column] = np.where(values[code] == x, code.astype(np.float64), np.nan)
        return X


def _bits(words: np.ndarray) -> np.ndarray:
    """Turn rows of eight 32-bit words into rows of 256 truth values."""
    shifts = np.arange(32, dtype=np.uint32)
    return ((words[:, :, None] >> shifts) & 1).astype(bool).reshape(len(words), 256)


def _columns(model: Any) -> dict[str, np.ndarray]:
    """Return the order of the columns and the categories of a fitted estimator."""
    d = model.n_features_in_
    order, known = np.arange(d), np.zeros((d, 256), dtype=bool)
    categories: list[tuple[float, float]] = []
    if model._preprocessor is not None:
        inside = np.asarray(model.is_categorical_, dtype=bool)
        order = np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)])
        encoder = model._preprocessor.named_transformers_["encoder"]
        for column, values in enumerate(encoder.categories_):
            numbers = np.asarray(values, dtype=np.float64)
            categories += [(float(column), value) for value in numbers[~np.isnan(numbers)]]
        sets, places = model._bin_mapper.make_known_categories_bitsets()
        for column in range(int(inside.sum())):
            known[column] = _bits(sets[places[column]][None])[0]
    table = np.array(categories, dtype=np.float64).reshape(-1, 2)
    return {"order": order.astype(np.int64), "known": known, "categories": table}
