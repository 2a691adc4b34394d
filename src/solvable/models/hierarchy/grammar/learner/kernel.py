r"""Kernel classifier of strings, whose kernel is a function of their Hamming distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.fitting.inputs import by_blocks, seed_from
from solvable.fitting.kernel_classifier import KERNELS, RbfClassifier
from solvable.fitting.ridge import Regularisation, RidgeFit, kernel_ridge
from solvable.models.hierarchy.encodings import MASKED, one_hot
from solvable.models.hierarchy.grammar.learner.strings import VocabularyClassifier


@dataclass(eq=False, repr=False)
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

    branching: int = 2
    kernel: Literal["auto", "gaussian", "laplace", "linear"] = "auto"
    vocabulary: int | None = None
    random_state: Any = None

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


BLOCK_NUMBERS = 1 << 21
"""Largest number of correlations that are held at a time."""


def lazy_kernel(X: np.ndarray, Z: np.ndarray, branching: int, vocabulary: int) -> np.ndarray:
    """Return the neural tangent kernel of the infinitely wide hierarchical CNN, shape (n, k)."""
    # Strings are whole numbers, and -1 for a masked leaf. At each level, with means over the s symbols of
    # a patch, rho = mean K, K = kappa_1(rho) and Theta = kappa_0(rho) (rho + mean Theta), from the inner
    # products K of standardised leaves and Theta = 0; the kernel is K + Theta at the top (hierarchy 26).
    # Shared weights do not change it, since gradients at different positions are uncorrelated.
    # inner products of standardised symbols: 1 if they are equal, else -1 / (V - 1)
    products = np.full((vocabulary + 1, vocabulary + 1), -1 / max(vocabulary - 1, 1))
    products[MASKED] = products[:, MASKED] = 0.0
    np.fill_diagonal(products, 1.0)
    rows = max(1, BLOCK_NUMBERS // Z.size)
    return by_blocks(lambda part: _block(part, Z, branching, products), X, rows)


def _block(X: np.ndarray, Z: np.ndarray, branching: int, products: np.ndarray) -> np.ndarray:
    """Kernel of a few rows with all of Z."""
    kernel = products[X.T[:, :, None], Z.T[:, None, :]]
    tangent = np.zeros_like(kernel)
    while len(kernel) > 1:
        shape = (-1, branching, *kernel.shape[1:])
        # rho = mean of K over the patch (hierarchy 26); rounding must not leave [-1, 1]
        correlation = np.clip(kernel.reshape(shape).mean(axis=1), -1, 1)
        # kappa_0 = 1 - arccos(rho) / pi
        slope = 1 - np.arccos(correlation) / np.pi
        # Theta = kappa_0 (rho + mean of Theta over the patch)
        tangent = slope * (correlation + tangent.reshape(shape).mean(axis=1))
        # K = kappa_1(rho) = rho kappa_0 + sqrt(1 - rho^2) / pi
        kernel = correlation * slope + np.sqrt(1 - correlation**2) / np.pi
    return np.asarray(kernel[0] + tangent[0])


@dataclass(eq=False, repr=False)
class LazyCNNClassifier(VocabularyClassifier):
    """The hierarchical CNN in the lazy limit, which learns no features.

    An infinitely wide network in the scaling of the neural tangent kernel, trained by the squared loss,
    is kernel ridge regression with this kernel. Time :math:`O(n^2s^L+n^3)`, memory :math:`40n^2` bytes.

    Parameters
    ----------
    branching : int
        Number :math:`s` of symbols in a patch, at least 2.
    regularisation : "leave-one-out" or float
        Ridge relative to the mean power of the kernel, at least 0, or chosen by leave-one-out.
    vocabulary : int, optional
        Number :math:`V` of symbols, at most 8192; default: the largest training symbol plus 1.
    random_state : int, Generator, RandomState or None
        Not used; kept so that all learners of strings have it.

    Attributes
    ----------
    classes_, readout_ : ndarray and RidgeFit
        Labels, and the fitted ridge.

    Examples
    --------
    >>> from solvable.models.hierarchy.target import RandomHierarchy
    >>> target = RandomHierarchy(vocabulary=4, rules=2, branching=2, depth=2, seed=0)
    >>> X, y = target.sample(100, 0)
    >>> model = LazyCNNClassifier(branching=2).fit(X, y)
    >>> float(model.score(*target.sample(500, 1))) > 0.5
    True
    """

    branching: int = 2
    regularisation: Regularisation = "leave-one-out"
    vocabulary: int | None = None
    random_state: Any = None

    def _fit_strings(self, symbols: np.ndarray, codes: np.ndarray) -> None:
        self.strings_ = symbols
        kernel = lazy_kernel(symbols, symbols, self.branching, self.vocabulary_)
        indicators = np.eye(len(self.classes_))[codes]
        self.readout_: RidgeFit = kernel_ridge(
            kernel, indicators, regularisation=self.regularisation
        )

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        kernel = lazy_kernel(X, self.strings_, self.branching, self.vocabulary_)
        return kernel @ self.readout_.coefficients + self.readout_.intercept
