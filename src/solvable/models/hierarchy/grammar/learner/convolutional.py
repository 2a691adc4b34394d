r"""The deep convolutional network whose architecture is the tree of the grammar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from solvable.arrays import check_integer
from solvable.fitting.inputs import by_blocks
from solvable.models.hierarchy.grammar.learner.descent import BLOCK_ROWS, StringNetwork
from solvable.models.hierarchy.grammar.learner.strings import check_flag


@dataclass(eq=False, repr=False)
class HierarchicalCNN(StringNetwork):
    r"""Convolutional network with filter size and stride :math:`s`, trained by gradient descent.

    .. math:: h_i^{(l)}=\max\!\Big(0,\frac{1}{\sqrt{F_l}}W^{(l)}\big[h_{si}^{(l+1)},\dots,
        h_{si+s-1}^{(l+1)}\big]\Big),\qquad f=\frac1h\,a^\top h^{(1)},

    with the standardised one-hot leaves :math:`h^{(L+1)}`, fan-in :math:`F_L=sV` and :math:`F_l=sh`
    below, standard normal initial weights, and steps of :math:`h` times the learning rate (mean-field
    scaling). The loss is the cross-entropy of the softmax of :math:`f`; the accuracy rises around
    :math:`n_cm^L` strings (arXiv:2307.02129; derivations/hierarchy (27)).

    Parameters
    ----------
    branching : int
        Number :math:`s` of symbols in a patch, at least 2.
    width : int
        Number :math:`h` of channels of each layer.
    learning_rate : float
        Step before the factor :math:`h`; falls to 0 as a cosine. At about 1 all activations become zero.
    momentum, batch_size, max_epochs : float and int
        Momentum of the descent, strings per step, and largest number of passes over the strings.
    stop_loss : float
        Training ends when the mean training loss of an epoch is at most this.
    shared : bool
        True: one filter per layer. False: each position has weights of its own (locally connected).
    validation_fraction : float
        Share of the strings that choose the epoch whose weights are kept; 0 keeps the last weights.
    vocabulary, blank : int, optional
        Number :math:`V` of symbols, at most 8192, default the largest training symbol plus 1; or the
        largest symbol, if it is a blank (:class:`~solvable.targets.SparseRandomHierarchy`), whose
        vector is zero.
    random_state : int, Generator, RandomState or None
        Seed of the weights and of the order of the strings.

    Attributes
    ----------
    classes_, depth_, vocabulary_, n_iter_ : ndarray and int
        Labels, number :math:`L` of hidden layers, number of symbols, and number of epochs.
    weights_, readout_ : list of ndarray of shape (groups, fan-in, width), and ndarray of shape (width, C)
        Weights of the layers, the one that reads the leaves first, and of the output.
    loss_curve_, validation_curve_ : list of float
        Mean losses of the epochs on training and validation strings.

    Examples
    --------
    >>> from solvable.models.hierarchy.target import RandomHierarchy
    >>> target = RandomHierarchy(vocabulary=4, rules=2, branching=2, depth=2, seed=0)
    >>> X, y = target.sample(64, 0)
    >>> model = HierarchicalCNN(branching=2, random_state=0).fit(X, y)
    >>> float(model.score(*target.sample(500, 1))) > 0.9
    True
    """

    shared: bool = True
    blank: int | None = None

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
        """Return the activations on the patches of a level, shape (n, s ** (level - 1), h)."""
        symbols = self._checked(X)
        check_integer("level", level, 1, self.depth_)
        layer = self.depth_ + 1 - level
        flat = by_blocks(lambda part: self._layers(part)[layer], symbols, BLOCK_ROWS)
        return flat.reshape(len(symbols), -1, self.width)


@dataclass(eq=False, repr=False)
class FullyConnectedNetwork(StringNetwork):
    r"""Fully connected ReLU network on strings, trained by gradient descent.

    .. math:: h^{(k)}=\max\!\Big(0,\frac{1}{\sqrt{F_k}}W^{(k)}h^{(k-1)}\Big),\qquad
        f=\frac1h\,a^\top h^{(K)},

    with :math:`h^{(0)}` the flattened standardised one-hot leaves, fan-in :math:`F_1=s^LV`,
    :math:`F_k=h` above, and scaling, training and attributes of
    :class:`~solvable.models.hierarchy.grammar.learner.convolutional.HierarchicalCNN`, compared with which
    it needs about :math:`2^L` times as many strings (arXiv:2307.02129, an empirical law).

    Parameters
    ----------
    branching : int
        Number :math:`s` of symbols in a patch, at least 2; only sets the default number of layers.
    width : int
        Number :math:`h` of neurons of each layer.
    layers : int, optional
        Number :math:`K` of hidden layers; default: :math:`L` for strings of :math:`s^L` symbols.
    learning_rate, momentum, batch_size, max_epochs, stop_loss, validation_fraction, vocabulary
        As of the convolutional network.
    random_state : int, Generator, RandomState or None
        Seed of the weights and of the order of the strings.

    Examples
    --------
    >>> from solvable.models.hierarchy.target import RandomHierarchy
    >>> target = RandomHierarchy(vocabulary=4, rules=2, branching=2, depth=2, seed=0)
    >>> X, y = target.sample(200, 0)
    >>> model = FullyConnectedNetwork(branching=2, random_state=0).fit(X, y)
    >>> float(model.score(*target.sample(500, 1))) > 0.9
    True
    """

    layers: int | None = None

    def _shapes(self, leaves: int) -> list[tuple[int, int, int]]:
        if self.layers is not None:
            check_integer("layers", self.layers, 1)
        sizes = [leaves * self.vocabulary_, *[self.width] * ((self.layers or self.depth_) - 1)]
        return [(1, size, self.width) for size in sizes]
