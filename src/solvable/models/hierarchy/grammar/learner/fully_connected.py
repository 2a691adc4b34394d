r"""A fully connected network on whole strings, in the scaling of the convolutional one."""

from __future__ import annotations

from typing import Any

from solvable.arrays import check_integer
from solvable.models.hierarchy.grammar.learner.descent import StringNetwork


class FullyConnectedNetwork(StringNetwork):
    r"""Fully connected ReLU network on strings, trained by gradient descent.

    .. math:: h^{(k)}=\max\!\Big(0,\frac{1}{\sqrt{F_k}}W^{(k)}h^{(k-1)}\Big),\qquad f=\frac1h\,a^\top
    h^{(K)},

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

    def __init__(
        self,
        branching: int = 2,
        width: int = 128,
        layers: int | None = None,
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        batch_size: int = 64,
        max_epochs: int = 200,
        stop_loss: float = 0.01,
        validation_fraction: float = 0.0,
        vocabulary: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.branching = branching
        self.width = width
        self.layers = layers
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.stop_loss = stop_loss
        self.validation_fraction = validation_fraction
        self.vocabulary = vocabulary
        self.random_state = random_state

    def _shapes(self, leaves: int) -> list[tuple[int, int, int]]:
        if self.layers is not None:
            check_integer("layers", self.layers, 1)
        sizes = [leaves * self.vocabulary_, *[self.width] * ((self.layers or self.depth_) - 1)]
        return [(1, size, self.width) for size in sizes]
