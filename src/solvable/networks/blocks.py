r"""Blocks of a layer-wise filtered network, and the coding of its labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from solvable.arrays import check_integer, is_integer
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.operators.activations import check_activation

Reduce: TypeAlias = int | Literal["auto"] | None
"""Number of eigenvectors that a filter keeps; None for no filter."""

Width: TypeAlias = int | float | None
"""Width of a lift (layer of random features): a number, infinity for its kernel, None for no lift."""

Whitening: TypeAlias = Literal["none", "std", "rms", "centred"]
"""Scaling of each kept coordinate: divisor, and centring or not."""

WHITENINGS = ("none", "std", "rms", "centred")


@dataclass(frozen=True)
class Block:
    r"""One block of a network: a filter, then a lift (a layer of random features).

    .. math:: h = V^\top a, \qquad a' = \frac{1}{\sqrt P}\,\sigma\!\Big(\frac{W^\top h}{c}\Big).

    A network that lifts first has ``reduce=None`` in its first block.

    Parameters
    ----------
    reduce : int, "auto" or None
        Number of eigenvectors of the label-weighted second moment to keep; "auto": those stronger than
        with permuted labels; None: no filter.
    width : int, infinity or None
        Number P of random features; ``math.inf`` for their kernel; None for no lift.
    activation : str
        One of :data:`solvable.operators.ACTIVATIONS`.
    first_moment : bool
        If True, the label-weighted mean is kept before the eigenvectors, as one more column (for C > 2
        classes, C - 1 columns).
    whitening : {"none", "std", "rms", "centred"}
        Divide each kept coordinate by its standard deviation or root mean square; "centred" subtracts
        the mean and divides by the standard deviation.
    patch : int or None
        Odd side of the image patches that are lifted with shared weights; None for a dense lift.
    pooling : int
        Side of the squares over which the kept coordinates of an image are averaged; 1 for none.
    centre_features : bool
        If True, the mean over the training samples is subtracted from the features before the filter.
        The constant part of random ReLU features adds noise of order :math:`n^{-1/2}` to the second
        moment, which hides signals of order :math:`1/d`. The publication does not centre.
    residual_labels : bool
        If True, the second moment is weighted by the residual of the labels after the first moments;
        requires ``first_moment``. A strong first moment adds noise to the second moment. Not available
        in streams, nor for many classes at finite width.
    skip : float or "auto"
        Share of the power of the lift's inputs that comes from the inputs of the lifts below the
        filter, from 0 to 1; the rest comes from the kept coordinates. "auto" (with ``reduce="auto"``):
        the share of the hidden directions that the kept ones are expected to miss, estimated from
        their null ratios; 1 if the filter finds no direction.
    bias : float
        Standard deviation of the biases of the lift relative to the root mean square norm of its inputs.

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
                f"width is {self.width!r} in a convolutional lift; allowed: an integer, as the kernel of "
                "a convolutional lift is not implemented."
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
        """True if the lift is infinitely wide and therefore a kernel."""
        return self.width == math.inf


def network_blocks(depth: int, *, width: Width = math.inf, activation: str = "relu") -> list[Block]:
    """Make the blocks of a network without filters: deep NNGP kernel, or random features.

    Parameters
    ----------
    depth : int
        Number of lifts, at least 1.
    width : int or infinity
        Width of every lift.
    activation : str
        Activation of every lift.

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
    """Raise :class:`InvalidParameter` unless the blocks form a valid network."""
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
    """Coding of labels for moments and readout."""

    counts: np.ndarray  # number of samples in each class, shape (G,); empty for real labels
    mean: float = 0.0  # mean of real labels, subtracted when they are standardised
    deviation: float = 1.0
    centre: bool = False  # True if two-valued labels are centred; all other labels always are
    bounded: bool = False  # True if filters see the hyperbolic tangent of real labels

    def __post_init__(self) -> None:
        if self.counts.size == 1:
            raise InvalidData("there is one class only; allowed: at least two.")
        if not self.counts.size and not self.deviation > 0:
            raise InvalidData("the labels are constant; allowed: labels that vary.")

    @property
    def is_real(self) -> bool:
        """True if the labels are real numbers."""
        return not self.counts.size

    @property
    def n_groups(self) -> int:
        """Number of groups of :class:`solvable.operators.LabelMoments`."""
        return 2 if self.is_real else len(self.counts)

    @cached_property
    def coefficients(self) -> np.ndarray:
        """Coefficients of the groups in each signal, shape (S, G)."""
        if self.is_real:
            return np.array([[0.0, 1.0]])
        shares = self.counts / self.counts.sum()
        if len(shares) == 2:
            signs = np.array([[-1.0, 1.0]])  # -1 and 1, or -2 pi_1 and 2 pi_0 if centred
            return signs - (signs @ shares)[:, None] if self.centre else signs
        return np.eye(len(shares)) - shares[:, None]  # 1{y = c} - pi_c

    @property
    def power(self) -> float:
        """Sum over signals of their mean squares."""
        if self.is_real:
            return 1.0
        shares = self.counts / self.counts.sum()
        return float(np.sum(self.coefficients**2 * shares))

    @property
    def n_outputs(self) -> int:
        """Number of columns of the readout."""
        return 1 if self.is_real or len(self.counts) == 2 else len(self.counts)

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Standardise real labels; return class numbers unchanged."""
        return (y - self.mean) / self.deviation if self.is_real else y

    def mapped(self, encoded: np.ndarray) -> np.ndarray:
        """Labels of the filters: class numbers unchanged, real labels bounded by tanh if set."""
        return np.tanh(encoded) if self.is_real and self.bounded else encoded

    def weights(self, encoded: np.ndarray) -> np.ndarray:
        """Weight of each sample in each signal, shape (n, S)."""
        if self.is_real:
            # Standardised labels have mean 0 over the training samples; bounded labels may not.
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
