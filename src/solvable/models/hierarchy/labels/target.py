"""Labels in levels: each is the product of two labels of the level below, or a majority of three."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import get_args

import numpy as np

from solvable.arrays import check_integer, random_stream
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.models.hierarchy.derivations import as_array, check_count, stream_of
from solvable.models.hierarchy.labels.parameters import LARGEST_DIMENSION, Gate, LabelParameters

LARGEST_DEPTH = 1000
"""Largest number of levels."""


@dataclass(frozen=True)
class LabelHierarchy:
    r"""Random signs with several levels of labels, all of which are observed.

    .. math:: z^{(0)}=x\in\{-1,1\}^d,\qquad z^{(l)}_k=z^{(l-1)}_{a_{lk}}\,z^{(l-1)}_{b_{lk}},
        \qquad l=1,\dots,r .

    With ``gate="majority"`` a label is the majority of three, :math:`(a+b+c-abc)/2`
    (arXiv:2601.00455, Theorem 3.4), of which each is correlated with it by 1/2.

    The pairs :math:`\{a,b\}` are drawn without replacement, and pairs whose product equals an earlier
    label of the same level are left out. So each label is a product of up to :math:`2^l` inputs, the
    labels of one level are different functions, and no label is constant.
    A small member of the class of label hierarchies of arXiv:2601.00455.

    Examples
    --------
    >>> target = LabelHierarchy(dimension=10, depth=3, labels=6)
    >>> X, Y = target.sample(5, np.random.default_rng(0))
    >>> X.shape, Y.shape
    ((5, 10), (5, 18))
    """

    dimension: int = 20
    """Number d of inputs, 2 to 60."""
    depth: int = 4
    """Number r of levels, 1 to 1000."""
    labels: int = 16
    """Number of labels of each level."""
    seed: int = 0
    """Seed of the pairs."""
    gate: Gate = "product"
    """Product of two labels of the level below, or majority of three different ones."""

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 2, LARGEST_DIMENSION)
        check_integer("depth", self.depth, 1, LARGEST_DEPTH)
        check_integer("labels", self.labels, 1)
        check_integer("seed", self.seed, 0)
        if self.gate not in get_args(Gate):
            raise InvalidParameter(unknown_choice("gate", self.gate, get_args(Gate)))
        _ = self.parts  # refuses too many labels

    @cached_property
    def parts(self) -> np.ndarray:
        """Positions of the factors or votes in the level below, shape (depth, labels, 2 or 3)."""
        return self._drawn[0] if self.gate == "product" else self._triples

    @cached_property
    def inputs_of(self) -> list[np.ndarray]:
        """Inputs whose product a label is, as bits of an integer; level 0 (the inputs) first."""
        return self._drawn[1]

    @property
    def _triples(self) -> np.ndarray:
        """Draw sets of three labels without replacement, ascending."""
        rng = random_stream(int(self.seed), "label hierarchy", "majority")
        levels, below = [], self.dimension
        for level in range(1, self.depth + 1):
            sets = np.array(list(combinations(range(below), 3)), dtype=np.intp).reshape(-1, 3)
            if len(sets) < self.labels:
                raise InvalidParameter(
                    f"labels is {self.labels}, but level {level} has only {len(sets)} triples of the "
                    f"{below} signs below; lower labels."
                )
            levels.append(sets[np.sort(rng.choice(len(sets), self.labels, replace=False))])
            below = self.labels
        return np.array(levels)

    @cached_property
    def _drawn(self) -> tuple[np.ndarray, list[np.ndarray]]:
        rng = random_stream(int(self.seed), "label hierarchy")
        below = np.left_shift(np.int64(1), np.arange(self.dimension, dtype=np.int64))
        pairs, levels = [], [below]
        for level in range(1, self.depth + 1):
            first, second = np.triu_indices(below.size, 1)
            order = rng.permutation(first.size)
            # The square of an input is 1: a product is the symmetric difference of two sets of inputs.
            products = (below[first] ^ below[second])[order]
            kept = np.sort(np.unique(products, return_index=True)[1])[: self.labels]
            if kept.size < self.labels:
                raise InvalidParameter(
                    f"labels is {self.labels}, but level {level} has only {kept.size} different "
                    f"products of two of the {below.size} signs below; lower labels, or change seed."
                )
            pairs.append(np.column_stack([first, second])[order[kept]])
            below = products[kept]
            levels.append(below)
        return np.array(pairs), levels

    def sample(self, n: int, rng: np.random.Generator | int) -> tuple[np.ndarray, np.ndarray]:
        """Draw inputs -1 and 1, shape (n, d), and their labels, shape (n, depth * labels)."""
        generator = stream_of(rng, "samples")
        check_count(n, 16 * (self.dimension + self.depth * self.labels))
        X = 2.0 * generator.integers(0, 2, size=(n, self.dimension)) - 1
        return X, self.labels_of(X)

    def labels_of(self, X: np.ndarray) -> np.ndarray:
        """Return the labels of inputs, shape (n, depth * labels)."""
        signs = as_array(X, "the inputs")
        if signs.ndim != 2 or signs.shape[1] != self.dimension:
            raise InvalidData(f"X has shape {signs.shape}; allowed: (n, {self.dimension}).")
        if signs.dtype.kind not in "if" or not (np.abs(signs) == 1).all():
            raise InvalidData(
                f"X has type {signs.dtype} and entries that are not signs; allowed: -1 and 1."
            )
        levels = [signs]
        for parts in self.parts:
            values = levels[-1][:, parts]
            combined = values.prod(2) if self.gate == "product" else np.sign(values.sum(2))
            levels.append(combined)
        return np.concatenate(levels[1:], axis=1)


def target_of(parameters: LabelParameters) -> LabelHierarchy:
    """Return the hierarchy with these parameters."""
    return LabelHierarchy(
        parameters.dimension, parameters.depth, parameters.labels, parameters.hierarchy_seed,
        parameters.gate,
    )  # fmt: skip
