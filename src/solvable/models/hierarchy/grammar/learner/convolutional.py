r"""The deep convolutional network whose architecture is the tree of the grammar."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.arrays import check_integer
from solvable.fitting.inputs import by_blocks
from solvable.models.hierarchy.grammar.learner.descent import BLOCK_ROWS, StringNetwork
from solvable.models.hierarchy.grammar.learner.strings import check_flag


class HierarchicalCNN(StringNetwork):
    r"""Convolutional network with filter size and stride :math:`s`, trained by gradient descent.

    Layers are numbered by the level of the patches that they read, from :math:`L` (the leaves) to 1.
    With :math:`h^{(L+1)}` the one-hot leaves, standardised to mean 0 and variance 1, position
    :math:`i` of layer :math:`l` and the output are

    .. math::

        h_i^{(l)}=\max\!\Big(0,\frac{1}{\sqrt{F_l}}W^{(l)}\big[h_{si}^{(l+1)},\dots,
        h_{si+s-1}^{(l+1)}\big]\Big),\qquad f=\frac1h\,a^\top h^{(1)},

    with fan-in :math:`F_L=sV` and :math:`F_l=sh` below, standard normal initial weights, and steps
    of :math:`h` times the learning rate (mean-field scaling, in which features are learned at any
    width). The loss is the cross-entropy of the softmax of :math:`f`.

    Parameters
    ----------
    branching : int
        Number :math:`s` of symbols in a patch, at least 2.
    width : int
        Number :math:`h` of channels of each layer.
    learning_rate : float
        Step of the descent, before the factor :math:`h`; falls to 0 as a cosine over `max_epochs`.
        At about 1 all activations become zero, and the network predicts one label.
    momentum : float
        Momentum of the descent, from 0 to below 1.
    batch_size : int
        Strings per step.
    max_epochs : int
        Largest number of passes over the strings.
    stop_loss : float
        Training ends when the mean training loss of an epoch is at most this.
    shared : bool
        True: one filter per layer, for all positions. False: each position has weights of its own
        (locally connected network).
    validation_fraction : float
        Share of the strings on which the loss is measured after each epoch; the weights of the best
        epoch are kept. Useful if labels are random given the string, as a masked leaf is. 0: the last
        weights are kept.
    vocabulary : int, optional
        Number :math:`V` of symbols, at most 8192; default: the largest training symbol plus 1.
    blank : int, optional
        Largest symbol, if it is a blank (:class:`~solvable.targets.SparseRandomHierarchy`): its vector
        is zero, and it replaces `vocabulary`.
    random_state : int, Generator, RandomState or None
        Seed of the weights and of the order of the strings.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels.
    depth_ : int
        Number :math:`L` of hidden layers, for strings of :math:`s^L` symbols.
    vocabulary_ : int
        Number of symbols.
    weights_ : list of ndarray of shape (groups, fan-in, width)
        Weights of the layers, the one that reads the leaves first.
    readout_ : ndarray of shape (width, C)
        Weights of the output.
    loss_curve_, validation_curve_ : list of float
        Mean losses of the epochs on training and validation strings.
    n_iter_ : int
        Number of epochs.

    Notes
    -----
    An epoch takes about :math:`6n\,s^Lh(V+h/(s-1))` operations in single precision. The test
    accuracy rises from chance to 1 around :math:`P^*=n_cm^L` strings (arXiv:2307.02129, an empirical
    law). The formula is derivations/hierarchy (27). The estimator checks of scikit-learn cannot be
    used, since their samples are not strings of symbols.

    Examples
    --------
    >>> from solvable.models.hierarchy.target import RandomHierarchy
    >>> target = RandomHierarchy(vocabulary=4, rules=2, branching=2, depth=2, seed=0)
    >>> X, y = target.sample(64, 0)
    >>> model = HierarchicalCNN(branching=2, random_state=0).fit(X, y)
    >>> float(model.score(*target.sample(500, 1))) > 0.9
    True
    """

    def __init__(
        self,
        branching: int = 2,
        width: int = 128,
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        batch_size: int = 64,
        max_epochs: int = 200,
        stop_loss: float = 0.01,
        shared: bool = True,
        validation_fraction: float = 0.0,
        vocabulary: int | None = None,
        blank: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.branching = branching
        self.width = width
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.stop_loss = stop_loss
        self.shared = shared
        self.validation_fraction = validation_fraction
        self.vocabulary = vocabulary
        self.blank = blank
        self.random_state = random_state

    def _check_settings(self) -> None:
        super()._check_settings()
        check_flag("shared", self.shared)

    def _shapes(self, leaves: int) -> list[tuple[int, int, int]]:
        sizes = [self.vocabulary_, *[self.width] * (self.depth_ - 1)]
        return [
            (
                1 if self.shared else leaves // self.branching ** (place + 1),
                self.branching * size,
                self.width,
            )
            for place, size in enumerate(sizes)
        ]

    def hidden(self, X: Any, level: int) -> np.ndarray:
        """Return the activations of the layer that reads the patches of a level.

        Parameters
        ----------
        X : array-like of shape (n, s ** L)
            Strings.
        level : int
            Level of the patches, from L (the first layer, on the leaves) to 1 (the last one).

        Returns
        -------
        ndarray of shape (n, s ** (level - 1), width)
            Activations at each position of the parents of these patches.

        Raises
        ------
        InvalidParameter
            If there is no such level.
        """
        symbols = self._checked(X)
        check_integer("level", level, 1, self.depth_)
        layer = self.depth_ + 1 - level
        flat = by_blocks(lambda part: self._layers(part)[layer], symbols, BLOCK_ROWS)
        return flat.reshape(len(symbols), -1, self.width)
