r"""The parts a layer-wise filtered network is made of, and the labels they are fitted to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from solvable.arrays import check_integer, is_integer
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.operators.activations import check_activation

Reduce: TypeAlias = int | Literal["auto"] | None
"""Eigenvectors that a filter keeps; None for no filter."""

Width: TypeAlias = int | float | None
"""Width of a lift: a number, infinity for its kernel, None for no lift."""

Whitening: TypeAlias = Literal["none", "std", "rms", "centred"]
"""What each kept coordinate is divided by, and whether it is centred."""

WHITENINGS = ("none", "std", "rms", "centred")


@dataclass(frozen=True)
class Block:
    r"""Filter, then lift.

    .. math:: h = V^\top a, \qquad a' = \frac{1}{\sqrt P}\,\sigma\!\Big(\frac{W^\top h}{c}\Big).

    A network that lifts first has ``reduce=None`` in its first block.

    Parameters
    ----------
    reduce : int, "auto" or None
        Eigenvectors of the label-weighted second moment to keep; "auto": those that stand out of
        permuted labels; None: no filter.
    width : int, infinity or None
        Random features P; ``math.inf`` for their kernel; None for no lift.
    activation : str
        One of :data:`solvable.operators.ACTIVATIONS`.
    first_moment : bool
        Whether the label-weighted mean comes in front of the eigenvectors, one more column (one per
        class but one for many classes).
    whitening : {"none", "std", "rms", "centred"}
        Divide each kept coordinate by its standard deviation or root mean square, or centre it too.
    patch : int or None
        Odd side of the neighbourhoods that are lifted with shared weights; None for a dense lift.
        Images only.
    pooling : int
        Side of the squares over which the kept coordinates of an image are averaged; 1 for none.
    centre_features : bool
        Whether the filter sees its features less their mean over the training samples. The constant part
        of random ReLU features makes noise of order :math:`n^{-1/2}` in the second moment, which hides
        signals of order :math:`1/d`. Off in the publication.
    residual_labels : bool
        Whether the second moment is that of what the first moments leave of the labels; with
        ``first_moment`` only. A strong first moment makes noise, and second moments of products of
        its columns with any other. Not in streams, nor of many classes at finite width.
    skip : float or "auto"
        Share of the power of the inputs of the lift that is made of the inputs of the lifts below the
        filter, from 0 to 1; the rest is that of the kept coordinates. "auto": the part of the
        hidden directions that the kept ones are expected to miss, by their ratios to the null; for
        ``reduce="auto"``. A filter that finds no direction then leaves these inputs alone.
    bias : float
        Standard deviation of the biases of the lift, over the root mean square norm of its inputs.

    Raises
    ------
    InvalidParameter
        If a value is out of range.

    Examples
    --------
    >>> Block(reduce=20, width=1000)
    Block(reduce=20, width=1000, activation='relu', first_moment=False, whitening='none', patch=None,
          pooling=1, centre_features=False, residual_labels=False, skip=0.0,
          bias=0.0)
    """

    reduce: Reduce = None
    width: Width = math.inf
    activation: str = "relu"
    first_moment: bool = False
    whitening: Whitening = "none"
    patch: int | None = None
    pooling: int = 1
    centre_features: bool = False
    residual_labels: bool = False
    skip: float | Literal["auto"] = 0.0
    bias: float = 0.0

    def __post_init__(self) -> None:
        if not (self.reduce is None or self.reduce == "auto" or is_integer(self.reduce)):
            raise InvalidParameter(
                f"reduce is {self.reduce!r}; allowed: an integer of at least 1, 'auto', or None."
            )
        if not (self.width is None or self.width == math.inf or is_integer(self.width)):
            raise InvalidParameter(
                f"width is {self.width!r}; allowed: an integer of at least 1, math.inf, or None."
            )
        check_activation(self.activation)
        if self.whitening not in WHITENINGS:
            raise InvalidParameter(unknown_choice("whitening", self.whitening, WHITENINGS))
        if self.patch is not None and not (is_integer(self.patch) and self.patch % 2):
            raise InvalidParameter(
                f"patch is {self.patch!r}; allowed: an odd integer of at least 1, or None."
            )
        check_integer("pooling", self.pooling, 1)
        if self.patch is not None and not is_integer(self.width):
            raise InvalidParameter(
                f"a convolutional lift has width {self.width!r}; allowed: an integer, as there is no "
                "kernel form of it here."
            )
        if self.residual_labels and not self.first_moment:
            raise InvalidParameter(
                "residual_labels are what first moments leave of the labels; set first_moment=True."
            )
        if self.skip == "auto" and self.reduce != "auto":
            raise InvalidParameter("skip is 'auto' and reduce is not; set both to 'auto'.")
        if self.skip != "auto" and not 0 <= float(self.skip) <= 1:
            raise InvalidParameter(f"skip is {self.skip!r}; allowed: from 0 to 1, or 'auto'.")
        if not 0 <= self.bias < math.inf:
            raise InvalidParameter(
                f"bias is {self.bias!r}; allowed: a finite number of at least 0."
            )
        of_filter = self.first_moment or self.centre_features or self.skip != 0
        if self.reduce is None and (of_filter or self.whitening != "none"):
            raise InvalidParameter(
                "first_moment, whitening, centre_features and skip belong to a filter; set reduce to a "
                "number or 'auto'."
            )

    @property
    def is_infinite(self) -> bool:
        """Whether the lift is taken by its kernel."""
        return self.width == math.inf


def network_blocks(depth: int, *, width: Width = math.inf, activation: str = "relu") -> list[Block]:
    """Blocks of a network that filters nothing: deep NNGP kernel, or lazy random features.

    Parameters
    ----------
    depth : int
        Number of lifts, at least 1.
    width : int or infinity
        Of every lift.
    activation : str
        Of every lift.

    Returns
    -------
    list of Block
        The blocks.

    Examples
    --------
    >>> len(network_blocks(3))
    3
    """
    check_integer("depth", depth, 1)
    return [Block(None, width, activation) for _ in range(depth)]


def check_blocks(blocks: Sequence[Block]) -> None:
    """Raise :class:`InvalidParameter` unless the blocks can follow one another."""
    if not blocks or not all(isinstance(block, Block) for block in blocks):
        raise InvalidParameter(
            f"blocks is {blocks!r}; allowed: a sequence of at least one solvable.learners.Block."
        )
    for before, after in pairwise(blocks):
        if before.is_infinite and after.reduce is None and not after.is_infinite:
            raise InvalidParameter(
                "a lift of finite width follows an infinite one without a filter between them; "
                "set reduce, or make both infinite."
            )
        if after.skip and before.patch is not None:
            raise InvalidParameter(
                "a block with skip follows a convolutional lift; allowed: skip after dense lifts."
            )
        if before.patch is None and after.patch is not None and before.width is not None:
            raise InvalidParameter("a convolutional block cannot follow a dense lift.")


@dataclass(frozen=True)
class LabelCode:
    """How labels enter the moments."""

    counts: np.ndarray  # samples of each class, shape (G,); empty for real labels
    mean: float = 0.0  # of real labels, which are standardised
    deviation: float = 1.0
    centre: bool = False  # whether two-valued labels lose their mean; all other labels always do
    bounded: bool = False  # whether filters see the hyperbolic tangent of real labels

    def __post_init__(self) -> None:
        if self.counts.size == 1:
            raise InvalidData("there is one class only; allowed: at least two.")
        if not self.counts.size and not self.deviation > 0:
            raise InvalidData("the labels are constant; allowed: labels that vary.")

    @property
    def is_real(self) -> bool:
        """Whether the labels are real numbers."""
        return not self.counts.size

    @property
    def n_groups(self) -> int:
        """Groups of :class:`solvable.operators.LabelMoments`."""
        return 2 if self.is_real else len(self.counts)

    @property
    def coefficients(self) -> np.ndarray:
        """How each signal combines the groups, shape (S, G)."""
        if self.is_real:
            return np.array([[0.0, 1.0]])
        shares = self.counts / self.counts.sum()
        if len(shares) == 2:
            signs = np.array([[-1.0, 1.0]])  # -1 and 1, or -2 pi_1 and 2 pi_0 if centred
            return signs - (signs @ shares)[:, None] if self.centre else signs
        return np.eye(len(shares)) - shares[:, None]  # 1{y = c} - pi_c

    @property
    def power(self) -> float:
        """Mean square of the signals, summed."""
        if self.is_real:
            return 1.0
        shares = self.counts / self.counts.sum()
        return float(np.sum(self.coefficients**2 * shares))

    @property
    def n_outputs(self) -> int:
        """Columns of the readout."""
        return 1 if self.is_real or len(self.counts) == 2 else len(self.counts)

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Class numbers as they are; real labels standardised."""
        return (y - self.mean) / self.deviation if self.is_real else y

    def mapped(self, encoded: np.ndarray) -> np.ndarray:
        """Labels as filters see them: class numbers as they are, real labels bounded if asked."""
        return np.tanh(encoded) if self.is_real and self.bounded else encoded

    def weights(self, encoded: np.ndarray) -> np.ndarray:
        """Weight of each sample in each signal, shape (n, S)."""
        if self.is_real:
            # Standardised labels have mean zero over the training samples; bounded ones may not.
            mapped = self.mapped(encoded)
            return np.asarray(mapped - mapped.mean() if self.bounded else mapped)[:, None]
        return np.asarray(self.coefficients.T[encoded])

    def outputs(self, encoded: np.ndarray) -> np.ndarray:
        """Targets of the readout, shape (n, n_outputs): real, -1 and 1, or one column a class."""
        if self.is_real:
            return np.asarray(encoded)[:, None]
        if len(self.counts) == 2:
            return np.where(encoded == 1, 1.0, -1.0)[:, None]
        return np.eye(len(self.counts))[encoded]
