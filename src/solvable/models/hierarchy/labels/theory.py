"""Errors of the cascade: exact features on random signs, and mean-field ridge regression on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_integer, is_real
from solvable.errors import InvalidParameter, quoted
from solvable.models.hierarchy.labels.majority import MajorityFeatures
from solvable.models.hierarchy.labels.parameters import check_cascade
from solvable.models.hierarchy.labels.target import LabelHierarchy


@dataclass(frozen=True)
class CascadeBlock:
    """Predicted errors of all labels after a block."""

    error: np.ndarray
    """Error of each label on fresh inputs, level 1 first; shape (labels,)."""
    out_of_fold_error: np.ndarray
    """Error of each label on the training samples, each predicted by fits to the other folds; shape
    (labels,)."""
    accepted: np.ndarray
    """True for the labels accepted so far; shape (labels,)."""
    functions: int
    """Number of different products of at most two known signs in this block, the constant included."""


@dataclass(frozen=True)
class Products:
    """Products of at most two known signs, whose estimates are flipped independently."""

    # Products that equal the same product of inputs form a group. With c = sqrt(w) rho for the kernel
    # weight w and the mean agreement rho of product and estimate, their covariance is
    # c c^T + diag(w - c²).

    inputs: np.ndarray  # product of inputs of each group, as bits, ascending
    group: np.ndarray  # group of each product
    weights: np.ndarray  # kernel weight w of each product
    training: np.ndarray  # c of each product on training samples
    fresh: np.ndarray  # c of each product on fresh inputs

    def places(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the group of each label, and whether the label is one of the products."""
        place = np.minimum(np.searchsorted(self.inputs, labels), self.inputs.size - 1)
        return place, self.inputs[place] == labels


def products_of(known: np.ndarray, training: np.ndarray, fresh: np.ndarray) -> Products:
    """Group all products of two known signs, and their mean agreement with their estimates."""
    first, second = np.triu_indices(known.size + 1, 1)
    signs, *agreements = (np.append(v, last) for v, last in ((known, 0), (training, 1), (fresh, 1)))
    # The last product is the constant: (1 + u.u')²/2 = (p + 1)/2
    #   + sum_a u_a u'_a + sum_{a<b} u_a u_b u'_a u'_b  (hierarchy 29)
    inputs, group = np.unique(np.append(signs[first] ^ signs[second], 0), return_inverse=True)
    weights = np.append(np.ones(first.size), (known.size + 1) / 2)
    columns = (np.sqrt(weights) * np.append(a[first] * a[second], 1) for a in agreements)
    return Products(inputs, group, weights, *columns)


class RidgeFit:
    """Mean-field ridge regression on groups of products, at an effective ridge k."""

    def __init__(self, products: Products, ridge: float, k: float) -> None:
        c, group, self.ridge, self.k = products.training, products.group, ridge, k
        a = 1 / (products.weights - c**2 + k)

        def sums(values: np.ndarray) -> np.ndarray:
            return np.bincount(group, values)

        # (C + k)^-1 = diag(a) - q (a c)(a c)^T in each group, q = 1 / (1 + sum a c²)  (hierarchy 31)
        q = 1 / (1 + sums(a * c**2))
        squares = sums(a**2 * c**2) * q
        trace = float(np.sum(a) - np.sum(squares))
        second = float(np.sum(a**2) - 2 * np.sum(sums(a**3 * c**2) * q) + squares @ squares)
        # n = tr C (C + k)^-1 + ridge / k and g = tr [C (C + k)^-1]² / n  (hierarchy 29)
        self.samples = c.size - k * trace + ridge / k
        used = (c.size - 2 * k * trace + k**2 * second) / self.samples
        self.noise_ratio = used / (1 - used)
        self.residual_ratio = ridge / (self.samples * k)
        # mean fit to the product of a group, and its squared error 1 - m - k c^T (C + k)^-2 c
        self.amplitude = sums(a * c * np.sqrt(products.weights)) * q
        self.mean, self.fresh_mean = sums(a * c**2) * q, sums(a * c * products.fresh) * q
        self.bias = np.maximum(1 - self.mean - k * squares * q, 1e-30)


def fit_ridge(products: Products, samples: float, ridge: float) -> RidgeFit:
    """Solve for the effective ridge at a number of samples."""
    from scipy.optimize import brentq

    low, high = ridge / samples, (float(products.weights.sum()) + ridge) / samples

    def excess(log_ridge: float) -> float:
        return RidgeFit(products, ridge, float(np.exp(log_ridge))).samples - samples

    root = brentq(excess, np.log(low) - 1e-6, np.log(high) + 1e-6, xtol=1e-10)
    return RidgeFit(products, ridge, float(np.exp(root)))


def sign_error(
    fit: RidgeFit, place: np.ndarray, linked: np.ndarray, *, fresh: bool, in_sample: bool = False
) -> np.ndarray:
    """Error of the sign of the fit to each label; 1/2 for a label that is none of the products."""
    from scipy.special import ndtr

    amplitude = np.where(linked, fit.amplitude[place], 0.0)
    mean = (fit.fresh_mean if fresh else fit.mean)[place]
    # rho = mean / amplitude; a product known at chance level (c = 0) adds nothing: rho = 0
    agreement = np.divide(mean, amplitude, out=np.zeros(mean.shape), where=amplitude != 0)
    # variance b g / (1 - g) of the fit at an input  (hierarchy 31)
    deviation = np.sqrt(np.where(linked, fit.bias[place], 1.0) * fit.noise_ratio)
    own = 0.0
    if in_sample:  # the fit at a training sample moves towards its own label  (hierarchy 32)
        own = 1 / fit.residual_ratio - 1
    # e = (1 + rho)/2 Phi(-S / s) + (1 - rho)/2 Phi(S / s)  (hierarchy 31)
    right, wrong = (ndtr(-(own + sign * amplitude) / deviation) for sign in (1, -1))
    return np.asarray((1 + agreement) / 2 * right + (1 - agreement) / 2 * wrong)


class ProductFeatures:
    """Known signs of a hierarchy of products, and how often their estimates are right."""

    def __init__(self, target: LabelHierarchy) -> None:
        self.labels = np.concatenate(target.inputs_of[1:])
        self.known = target.inputs_of[0]
        self.training, self.fresh = np.ones(self.known.size), np.ones(self.known.size)
        self.functions = 0
        self._latest = (self.training, self.fresh)

    def errors(
        self, used: float, samples: int, ridge: float, *, in_sample: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Out-of-fold error and error on fresh inputs of each label, fitted to the known signs."""
        products = products_of(self.known, self.training, self.fresh)
        self.functions = products.inputs.size
        place, linked = products.places(self.labels)
        partial, whole = (fit_ridge(products, size, ridge) for size in (used, samples))
        held_out = sign_error(partial, place, linked, fresh=False, in_sample=in_sample)
        self._latest = (held_out, sign_error(whole, place, linked, fresh=True))
        return self._latest

    def add(self, added: np.ndarray) -> None:
        """Make labels known, with the errors that were computed last."""
        held_out, error = self._latest
        self.known = np.append(self.known, self.labels[added])
        self.training = np.append(self.training, 1 - 2 * held_out[added])
        self.fresh = np.append(self.fresh, 1 - 2 * error[added])


def label_cascade(
    target: LabelHierarchy,
    *,
    samples: int,
    blocks: int,
    folds: int = 2,
    threshold: float = 0.15,
    ridge: float = 1.0,
    deviation: float = 0.0,
) -> list[CascadeBlock]:
    r"""Predict the errors of all labels of a hierarchy after each block of the cascade.

    On random signs the kernel has the eigenvalue :math:`w_v`, the number of ways to write the product v
    with at most two known signs. Ridge regression on N samples learns the share :math:`L=w/(w+\kappa)`

    .. math:: e=\Phi\Big(-\frac{L}{1-L}\sqrt{\frac{1-g}{g}}\Big),\qquad
        N=\sum_v\frac{w_v}{w_v+\kappa}+\frac\lambda\kappa,\qquad
        g=\frac1N\sum_v\Big(\frac{w_v}{w_v+\kappa}\Big)^2,

    of a label that is such a product; other labels have the error :math:`e=1/2`. Errors of accepted
    labels are taken as independent. derivations/hierarchy (29), (31), (32), (37).

    Parameters
    ----------
    target : LabelHierarchy
        The labels.
    samples, blocks, folds : int
        Numbers n of samples, of blocks, and of folds, as of the learner.
    threshold, ridge : float
        Largest out-of-fold error of an accepted label, and ridge penalty, as of the learner.
    deviation : float
        Binomial standard errors added to each out-of-fold error that is compared with the threshold; -4
        and 4 enclose the outcomes.

    Returns
    -------
    list of CascadeBlock
        One for each block.

    Examples
    --------
    >>> from solvable.models.hierarchy.labels.target import LabelHierarchy
    >>> first, second = label_cascade(LabelHierarchy(depth=2), samples=2400, blocks=2)
    >>> first.error.reshape(2, 16).mean(axis=1).round(2).tolist()
    [0.0, 0.38]
    >>> bool(second.error.max() < 1e-3)
    True
    """
    if not isinstance(target, LabelHierarchy):
        raise InvalidParameter(f"target is {quoted(target)}; allowed: a LabelHierarchy.")
    check_integer("samples", samples, 2)
    check_cascade(blocks=blocks, folds=folds, threshold=threshold, ridge=ridge, samples=samples)
    if not is_real(deviation) or not np.isfinite(deviation):
        raise InvalidParameter(f"deviation is {quoted(deviation)}; allowed: a finite number.")
    majority = target.gate == "majority"
    features = MajorityFeatures(target) if majority else ProductFeatures(target)
    size = target.depth * target.labels
    error, held_out = np.full(size, 0.5), np.full(size, 0.5)
    accepted = np.zeros(size, dtype=bool)
    used = samples * (1 - 1 / folds) if folds > 1 else float(samples)
    states: list[CascadeBlock] = []
    for _ in range(blocks):
        new = features.errors(used, samples, ridge, in_sample=folds == 1)
        held_out, error = (
            np.where(accepted, old, one) for old, one in zip((held_out, error), new, strict=True)
        )
        counted = held_out + deviation * np.sqrt(held_out * (1 - held_out) / samples)
        added = ~accepted & (counted < threshold)
        accepted = accepted | added
        states.append(CascadeBlock(error, held_out, accepted, features.functions))
        features.add(added)
        if not added.any():  # further blocks repeat this one
            return states + states[-1:] * (blocks - len(states))
    return states


def required_samples(
    target: LabelHierarchy, *, blocks: int, folds: int, threshold: float, ridge: float
) -> tuple[float | None, ...]:
    """Samples from which all labels of each level are accepted; None for a level never reached."""
    # None as well for majorities, of which each has an error of its own.
    if target.gate == "majority":
        return (None,) * target.depth
    needed = np.full((target.depth, target.labels), np.nan)
    labels, known = np.concatenate(target.inputs_of[1:]), target.inputs_of[0]
    for _ in range(blocks if folds > 1 else 0):
        ones = np.ones(known.size)
        products = products_of(known, ones, ones)
        place, linked = products.places(labels)
        added = linked & np.isnan(needed.ravel())
        sizes = np.bincount(products.group)[place[added]]
        at = {
            m: _samples_at(products, place[added][sizes == m][0], threshold, ridge)
            for m in {*sizes}
        }
        needed.ravel()[added] = [at[m] * folds / (folds - 1) for m in sizes]
        known = np.append(known, labels[added])
    # A level needs all labels of the levels below it.
    highest = np.maximum.accumulate(needed.max(axis=1))
    return tuple(None if np.isnan(size) else float(size) for size in highest)


def _samples_at(products: Products, place: int, threshold: float, ridge: float) -> float:
    """Return the samples at which the sign of a fit to the product of a group has this error."""
    from scipy.optimize import brentq

    places, linked = np.array([place]), np.array([True])

    def excess(log_ridge: float) -> float:
        # the number of samples is explicit in the effective ridge  (hierarchy 29)
        fit = RidgeFit(products, ridge, float(np.exp(log_ridge)))
        return float(sign_error(fit, places, linked, fresh=True)[0]) - threshold

    return RidgeFit(products, ridge, float(np.exp(brentq(excess, -12, 16)))).samples
