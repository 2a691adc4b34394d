"""The two-stage learner of multi-index models, with the interface of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from solvable.arrays import (
    Array,
    Source,
    as_on,
    check_integer,
    check_real,
    random_stream,
    to_numpy,
)
from solvable.errors import InvalidParameter, NoFeatureFound, unknown_choice
from solvable.fitting.inputs import seed_from, validated_fit_input, validated_input
from solvable.fitting.ridge import Regularisation
from solvable.models.multi_index.readout import Readout, ReadoutName, fit_readout
from solvable.models.multi_index.spectral import (
    MARGIN,
    InputMoment,
    SpectralDirections,
    default_permutations,
    spectral_directions,
)
from solvable.models.multi_index.whitening import Scaling, Whiten, fit_scaling
from solvable.operators import apply_label_map
from solvable.operators.feature_map import floating
from solvable.operators.labels import LabelMap
from solvable.spectra.orientation import oriented

ROWS = 4096
"""Number of rows that are projected on the directions at a time."""


class MultiIndexRegressor(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, RegressorMixin, BaseEstimator
):
    r"""Find the few directions that a label depends on, then fit a ridge readout on them.

    With the centred, mapped labels T and the whitened inputs :math:`\tilde x`,

    .. math:: \hat D=\frac1n\sum_iT(y_i)\,\tilde x_i\tilde x_i^\top,\qquad
        \hat y=b+\sum_jc_j\,\varphi_j(\hat U^\top\tilde x),

    where the columns of :math:`\hat U` are the eigenvectors of :math:`\hat D` whose eigenvalues lie above
    or below the spectrum with permuted labels. The mean of :math:`T(y)\tilde x` is added as a direction
    if it is longer than with permuted labels. arXiv:2602.05846; arXiv:2502.01583;
    derivations/multi-index (7), (8), (27).

    Parameters
    ----------
    n_directions : "auto" or int
        Number of eigenvectors to keep, ranked by distance from the bulk; "auto" keeps every outlier.
    label_map : {"tanh", "clip", "square", "identity"} or callable
        Function T of the standardised labels. A bounded map needs fewer samples. Use "square", which is
        cut at 9, for targets of noise sensitivity exponent 2: no other map finds these targets.
    linear : bool
        Whether the mean of :math:`T(y)\tilde x` is tested, because second moments do not find odd
        functions.
    readout, n_neurons : {"relu", "monomials", "none"}, and int
        Functions :math:`\varphi`: this number of random ReLU neurons, monomials up to degree 2, or none.
    regularisation : float or "leave-one-out"
        Ridge penalty over the mean power of the readout's features, or chosen by cross-validation.
    deflation : int, 0 to 100
        Number of further passes with residuals of the readout as labels, which add directions that strong
        features had hidden.
    whiten : {"shrunk", "scale", "none"}
        Centre, scale and whiten by the correlation, shrunk towards the identity; centre and scale;
        nothing.
    n_permutations : int or "auto"
        Label permutations that determine the edges; default 2000 / min(n, d), between 1 and 19.
    chunk_rows : int, optional
        Rows per block in products with the operator.
    random_state : int, RandomState, Generator or None
        Seed for permutations, neurons and starting vectors.

    Attributes
    ----------
    components_, kinds_ : ndarray of shape (k, d), and tuple of {"spectral", "residual", "linear"}
        Directions in the original inputs: the first pass by distance from the bulk, residual passes, the
        linear direction; and the origin of each.
    eigenvalues_, edges_ : ndarray of shape (k,), and list of tuple of float
        Eigenvalue of each direction in its pass, NaN if linear; edges with permuted labels for every
        pass.
    rejected_ : tuple of str
        Reasons why the next candidates of the first pass are not outliers, with their eigenvalues.
    mean_, shrinkage_ : ndarray of shape (d,), and float
        Mean that is subtracted; weight of the identity in the correlation, 1 if that was not used.
    readout_, n_features_in_ : Readout or None, and int
        Fitted readout, and number of columns of X.

    Notes
    -----
    The operator, each permutation and the correlation cost :math:`nd^2` flops each, or 40 to 100
    products with vectors if d is large and n is not; memory beyond X is :math:`O(d^2)`. X may be a path
    to a ``.npy`` file, a :class:`solvable.arrays.Source`, or a torch tensor. Without an outlier `fit`
    warns (NoFeatureFound), and predicts the mean of the labels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 20))
    >>> y = X[:, 0] ** 2 - X[:, 1] ** 2
    >>> model = MultiIndexRegressor(linear=False, random_state=0).fit(X, y)
    >>> model.kinds_, bool(np.sum(model.components_[:, :2] ** 2) > 1.9)
    (('spectral', 'spectral'), True)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        n_directions: int | Literal["auto"] = "auto",
        *,
        label_map: LabelMap = "tanh",
        linear: bool = True,
        readout: ReadoutName = "relu",
        n_neurons: int = 300,
        regularisation: Regularisation = "leave-one-out",
        deflation: int = 0,
        whiten: Whiten = "shrunk",
        n_permutations: int | Literal["auto"] = "auto",
        chunk_rows: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_directions = n_directions
        self.label_map = label_map
        self.linear = linear
        self.readout = readout
        self.n_neurons = n_neurons
        self.regularisation = regularisation
        self.deflation = deflation
        self.whiten = whiten
        self.n_permutations = n_permutations
        self.chunk_rows = chunk_rows
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, which report a poor score if linear directions are not used."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = not self.linear
        tags.target_tags.required = True
        return tags

    def fit(self, X: Array | Source, y: Array) -> MultiIndexRegressor:
        """Find the directions in X of shape (n, d) and y of shape (n,), and fit the readout."""
        source, labels = validated_fit_input(self, X, y)
        _check_settings(self, source)
        seed = seed_from(self.random_state)
        scaling = fit_scaling(source, self.whiten)
        d, spread = source.n_columns, float(np.std(labels))
        self.mean_ = np.zeros(d) if scaling.mean is None else scaling.mean
        self.shrinkage_ = scaling.shrinkage
        self.edges_: list[tuple[float, float]] = []
        basis, values = np.zeros((d, 0)), []  # orthonormal directions of the whitened inputs
        for pass_ in range(self.deflation + 1):
            left = labels
            if pass_:
                self._fit_readout(source, labels, seed)
                left = labels - self._predicted(source)
            found = self._search(source, left, scaling, basis, spread, seed, pass_)
            if found is None:
                break
            basis = np.concatenate([basis, found.directions], axis=1)
            values += [("residual" if pass_ else "spectral", float(v)) for v in found.eigenvalues]
            self._publish(basis, values, scaling)
        along = (
            self._linear_direction(source, labels, scaling, basis, seed) if self.linear else None
        )
        if along is not None:
            basis = np.concatenate([basis, along[:, None]], axis=1)
            self._publish(basis, [*values, ("linear", np.nan)], scaling)
        self._fit_readout(source, labels, seed)
        if not self._n_features_out:
            warnings.warn(
                f"no direction is significant among {d} columns and {source.n_samples} samples, so "
                f"predictions are the mean label: {self.rejected_[0]}",
                NoFeatureFound,
                stacklevel=2,
            )
        return self

    def _search(
        self,
        source: Source,
        labels: np.ndarray,
        scaling: Scaling,
        basis: np.ndarray,
        scale: float,
        seed: int,
        pass_: int,
    ) -> SpectralDirections | None:
        """Find the directions of one pass, orthogonal to the basis; None if none is left to find."""
        wanted = None if self.n_directions == "auto" else self.n_directions - basis.shape[1]
        # Residuals show the remaining directions better than labels do. Therefore earlier passes keep
        # only outliers, and the last pass fills up the number of directions.
        last = pass_ == self.deflation
        if wanted == 0 or basis.shape[1] == source.n_columns:
            return None
        if pass_ and np.std(labels) <= 1e-9 * scale:
            return None
        found = spectral_directions(
            partial(
                InputMoment,
                source,
                scaling=scaling,
                known=basis if basis.shape[1] else None,
                chunk_rows=self.chunk_rows,
            ),
            apply_label_map(labels, self.label_map),
            wanted if last else None,
            n_permutations=None if self.n_permutations == "auto" else self.n_permutations,
            seed=seed + pass_,
        )
        self.edges_.append(found.edges)
        if not pass_:
            self.rejected_ = found.rejected
        return found if wanted is None else found.first(wanted)

    def _linear_direction(
        self,
        source: Source,
        labels: np.ndarray,
        scaling: Scaling,
        basis: np.ndarray,
        seed: int,
    ) -> np.ndarray | None:
        """Return the mean of T(y) x orthogonal to the basis; None if the mean is not significant."""
        even = isinstance(self.label_map, str) and self.label_map == "square"
        weights = apply_label_map(labels, "tanh" if even else self.label_map)
        count = default_permutations(weights.size, source.n_columns)
        count = max(5, count if self.n_permutations == "auto" else self.n_permutations)
        # One column contains the labels, every other column a permutation. Single precision saves memory.
        table = np.empty((weights.size, count + 1), dtype=np.float32)
        table[:, 0] = weights
        for draw in range(count):
            table[:, draw + 1] = random_stream(seed, "linear", draw).permutation(table[:, 0])
        total = np.zeros((source.n_columns, count + 1))
        for part, block in scaling.source(source).chunks(ROWS):
            X = floating(block)
            total += to_numpy(X.T @ as_on(table[part], X))
        moments = scaling.turn_back(total / weights.size)
        moments -= basis @ (basis.T @ moments)
        lengths = np.linalg.norm(moments, axis=0)
        if not lengths[0] > (1 + MARGIN) * lengths[1:].max():
            return None
        return np.asarray(moments[:, 0] / lengths[0])

    def _publish(self, basis: np.ndarray, found: list[tuple[str, float]], scaling: Scaling) -> None:
        """Set the fitted attributes that describe the directions."""
        self.components_ = oriented(scaling.components(basis)).T
        self.kinds_ = tuple(kind for kind, _ in found)
        self.eigenvalues_ = np.array([value for _, value in found])
        self._n_features_out = len(found)

    def _coordinates(self, source: Source) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the samples' coordinates along the directions, block by block."""
        for part, block in source.chunks(ROWS):
            X = floating(block)
            centred = X - as_on(self.mean_, X) if self.whiten != "none" else X
            yield part, to_numpy(centred @ as_on(self.components_.T, X)).astype(np.float64)

    def _fit_readout(self, source: Source, labels: np.ndarray, seed: int) -> None:
        """Fit a ridge on functions of the coordinates; without directions, predict the mean label."""
        self.readout_: Readout | None = None
        self.intercept_ = float(labels.mean())
        if self._n_features_out and self.readout != "none":
            self.readout_ = fit_readout(
                ((H, labels[part]) for part, H in self._coordinates(source)),
                self._n_features_out,
                self.readout,
                n_neurons=self.n_neurons,
                regularisation=self.regularisation,
                rng=random_stream(seed, "neurons"),
            )

    def _predicted(self, source: Source) -> np.ndarray:
        predictions = np.full(source.n_samples, self.intercept_)
        if self.readout_ is not None:
            for part, H in self._coordinates(source):
                predictions[part] = self.readout_(H)
        return predictions

    def transform(self, X: Array | Source) -> np.ndarray:
        """Project samples on the directions; return float64, shape (n, k)."""
        check_is_fitted(self)
        source = validated_input(self, X)
        coordinates = np.empty((source.n_samples, self._n_features_out))
        for part, H in self._coordinates(source):
            coordinates[part] = H
        return coordinates

    def predict(self, X: Array | Source) -> np.ndarray:
        """Predict labels block by block; return float64, shape (n,)."""
        check_is_fitted(self)
        if self.readout == "none":
            raise InvalidParameter(
                "readout is 'none', so the model has directions but makes no predictions; use "
                "transform, or fit with readout='monomials' or 'relu'."
            )
        return self._predicted(validated_input(self, X))


def _check_settings(estimator: MultiIndexRegressor, source: Source) -> None:
    """Raise unless every hyper-parameter is in its documented range."""
    choices = {"readout": ("monomials", "relu", "none"), "whiten": ("shrunk", "scale", "none")}
    for name, allowed in choices.items():
        value = getattr(estimator, name)
        if not isinstance(value, str) or value not in allowed:
            raise InvalidParameter(unknown_choice(name, value, allowed))
    if not (isinstance(estimator.n_directions, str) and estimator.n_directions == "auto"):
        check_integer("n_directions", estimator.n_directions, 1, source.n_columns)
    if not (isinstance(estimator.n_permutations, str) and estimator.n_permutations == "auto"):
        check_integer("n_permutations", estimator.n_permutations, 1)
    check_integer("n_neurons", estimator.n_neurons, 1)
    check_integer("deflation", estimator.deflation, 0, 100)
    if estimator.chunk_rows is not None:
        check_integer("chunk_rows", estimator.chunk_rows, 1)
    if estimator.regularisation != "leave-one-out":
        check_real("regularisation", estimator.regularisation, 0.0, also=" or 'leave-one-out'")
    if not isinstance(estimator.linear, (bool, np.bool_)):
        raise InvalidParameter(f"linear is {estimator.linear!r}; allowed: True, False.")
    if estimator.deflation and estimator.readout == "none":
        raise InvalidParameter(
            f"deflation is {estimator.deflation} with readout='none'; allowed: 0, or another readout, "
            "since residuals are those of a readout."
        )
