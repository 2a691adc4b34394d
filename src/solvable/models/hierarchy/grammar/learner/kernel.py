r"""Kernel classifier of strings, whose kernel is a function of their Hamming distance."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.fitting.inputs import seed_from
from solvable.fitting.kernel_classifier import KERNELS, RbfClassifier
from solvable.models.hierarchy.encodings import one_hot
from solvable.models.hierarchy.grammar.learner.strings import VocabularyClassifier


class KernelClassifier(VocabularyClassifier):
    r"""Kernel ridge on the indicators of the labels, tuned by leave-one-out.

    The strings are one-hot, so that their squared distance :math:`r^2` is proportional to the number of
    different symbols. The kernels are :math:`e^{-r^2/w^2}` (gaussian), :math:`e^{-r/w}` (laplace) and
    :math:`\langle x,x'\rangle` (linear). Kernel, width (seven values from :math:`1/8` to 8 times the
    median) and ridge have the smallest leave-one-out error on at most 600 strings; the ridge of a larger
    fit is chosen again on 700 strings. Time :math:`O(n^3)`, memory :math:`40n^2` bytes.

    Parameters
    ----------
    branching : int
        Number :math:`s` of symbols in a patch, at least 2; only checks the length of the strings.
    kernel : {"auto", "gaussian", "laplace", "linear"}
        The kernel; "auto" chooses one by leave-one-out.
    vocabulary : int, optional
        Number :math:`V` of symbols, at most 8192; default: the largest training symbol plus 1.
    random_state : int, Generator, RandomState or None
        Seed of the choice of the strings for tuning.

    Attributes
    ----------
    classes_, kernel_, model_ : ndarray, str and RbfClassifier
        Labels, the kernel that was used, and the fitted ridge.

    Examples
    --------
    >>> from solvable.models.hierarchy.target import RandomHierarchy
    >>> target = RandomHierarchy(vocabulary=4, rules=2, branching=2, depth=2, seed=0)
    >>> X, y = target.sample(100, 0)
    >>> model = KernelClassifier(branching=2, random_state=0).fit(X, y)
    >>> float(model.score(*target.sample(500, 1))) > 0.5
    True
    """

    def __init__(
        self,
        branching: int = 2,
        kernel: Literal["auto", "gaussian", "laplace", "linear"] = "auto",
        vocabulary: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.branching = branching
        self.kernel = kernel
        self.vocabulary = vocabulary
        self.random_state = random_state

    def _check_settings(self) -> None:
        if self.kernel not in ("auto", *KERNELS):
            raise InvalidParameter(unknown_choice("kernel", self.kernel, ("auto", *KERNELS)))

    def _fit_strings(self, symbols: np.ndarray, codes: np.ndarray) -> None:
        kernels = KERNELS if self.kernel == "auto" else (self.kernel,)
        model = RbfClassifier(seed=seed_from(self.random_state), kernels=kernels)
        self.model_ = model.fit(self._encoded(symbols), codes)
        self.kernel_ = model.kernel_

    def _encoded(self, symbols: np.ndarray) -> np.ndarray:
        return one_hot(symbols, self.vocabulary_).reshape(len(symbols), -1)

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        return self.model_.outputs(self._encoded(X))
