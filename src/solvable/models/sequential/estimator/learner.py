"""Layer-wise spectral regression with the interface of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from solvable.arrays import Array, Source, random_stream
from solvable.errors import InvalidParameter, NoFeatureFound, unknown_choice
from solvable.fitting.inputs import seed_from, validated_fit_input, validated_input
from solvable.fitting.row_subsets import Part, count_held_back, part_sizes, split_rows
from solvable.models.sequential.estimator.readout import fit_spline_readout
from solvable.models.sequential.estimator.second_layer import (
    SecondLayer,
    constant_layer,
    fit_least_squares,
    layer_from_spectrum,
)
from solvable.models.sequential.estimator.spectral_layer import (
    LayerSettings,
    SpectralLayer,
    StoredLatent,
    fit_spectral_layer,
    inputs_of_next_layer,
    latent_chunks,
)
from solvable.moment_spectrum.cross_terms import wants_cross_terms
from solvable.operators import MomentOperator, standardise
from solvable.operators.base import Correction
from solvable.operators.labels import LabelMap


class LayerwiseSpectralRegressor(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, RegressorMixin, BaseEstimator
):
    r"""Learn latent features layer by layer, as outliers of label-weighted moments.

    With the orthonormal Hermite features F of degree q of the inputs, and the mapped and centred labels
    T, the directions are eigenvectors with eigenvalues outside the predicted bulk of

    .. math:: \hat C = \frac1n\sum_\mu T_\mu\,(F_\mu F_\mu^\top - I_D),\qquad
        \hat y = \hat g\Big(b + \sum_{ij} Q_{ij}\hat h_i\hat h_j\Big),\quad
        \hat h_i = \langle\hat A_i, F(x)\rangle .

    The latent features are the inputs of the next spectral layer, which has degree 2, and at last of the
    output, which is fitted on rows that the spectral steps do not use. Inputs should have mean 0 and
    covariance I. Functions that are odd in x are not found: remove a linear fit from y first.

    Parameters
    ----------
    degree : {1, 2, 3}
        Degree q of the first layer; with 1 the features are the inputs themselves.
    n_directions : "auto", int, or tuple of these, one per spectral layer
        "auto" returns every outlier; an integer is the largest number, or the exact one if not
        "outliers".
    label_map : {"tanh", "clip", "identity"} or callable
        Function that maps the standardised labels to T. A bounded map lowers the threshold.
    correction : {"auto", "wick", "none"}
        "wick" keeps the Hermite component of degree 2q of the moment: no bias O(1/d), but eigenvalues
        lower by 7/d (degree 2) or 12/d (degree 3). "auto" corrects degree 2. It assumes Gaussian
        inputs.
    second_layer : {"least-squares", "in-sample", "shrinkage"}
        Least squares on held-back rows, or eigenvalues as they are (biased away from 0) or shrunk.
        Those have the units of the labels only for ``label_map="identity"``; else the readout restores
        the units.
    cross_terms, linear_terms : bool or "auto", and bool
        Whether least squares has columns :math:`\hat h_i\hat h_j`, :math:`i\ne j` ("auto": from ten
        held-back rows per coefficient on), and columns :math:`\hat h_i`.
    regularisation : float
        Ridge penalty of the least squares, relative to the variance of each column.
    held_back : float or int
        Fraction or number of rows for the second layer and the readout; 0 if neither is fitted.
    shuffle : bool
        True draws the held-back rows; False takes the last rows, which avoids a copy of arrays.
    readout : {"spline", "none"}
        A penalised spline of the index, constant outside its training range, or the index itself.
    selection : {"outliers", "forced", "modulus"}
        Directions outside the bulk; exactly ``n_directions``, those farthest beyond an edge first; or
        (published) those of largest modulus, which loses features if the bulk is shifted or skewed.
    solver : {"auto", "lanczos", "dense", "gram", "power-iteration"}
        Solver for the eigenpairs; "power-iteration" (published) makes 15 passes without a Ritz step.
    tolerance, max_products : float, and int, optional
        Largest relative residual of a converged eigenpair, and products per layer after which Lanczos
        stops.
    random_state : int, RandomState, Generator or None
        Source of randomness for the split and for the starting vectors of the solver.

    Attributes
    ----------
    directions_, eigenvalues_ : ndarray of shape (D, k) and (k,)
        Orthonormal directions of the first layer, the farthest beyond an edge first, and their
        eigenvalues.
    bulk_edges_, noise_edges_ : tuple of float
        Edges against which eigenvalues are tested, with the population bulk that the selected features
        imply and a margin that noise exceeds in one of 100 fits per side; and edges of the noise alone.
    noise_scale_ : float
        Standard deviation of the noise spectrum, :math:`s^2 = E_n[T^2\|F\|^4]/(nD)`.
    rejected_ : tuple of Rejection
        Candidate directions that do not count as features, each with the reason.
    layers_ : list of SpectralLayer
        All spectral layers; each has the attributes above, without the trailing underscore.
    second_layer_, readout_ : SecondLayer, and SplineReadout or None
        Intercept and matrix Q, in the units of the labels, and the readout (from 20 held-back rows on).
    n_products_, route_, n_features_in_ : int, str and int
        Number of products with moment operators, solver of the first layer, and number of columns of X.

    Notes
    -----
    A product costs about :math:`4nd^2` flops (q = 2), and a fit 50 to 120 products with memory for X, one
    chunk of rows and :math:`O(n + kD)` numbers. X may be a path to a ``.npy`` file, a
    :class:`solvable.arrays.Source`, or a torch tensor. Each deeper layer gets separate rows if there are
    enough. Without an outlier `fit` warns (NoFeatureFound), and predicts the mean of the labels.
    arXiv:2605.14567, Algorithm 1; arXiv:2602.10867; derivations/sequential (2), (11), (20), (24).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 20))
    >>> y = X[:, 0] ** 2 - X[:, 1] ** 2
    >>> learner = LayerwiseSpectralRegressor(degree=1, random_state=0).fit(X, y)
    >>> learner.directions_.shape
    (20, 2)
    >>> round(float(np.sum(learner.directions_[:2] ** 2)), 1)
    2.0
    """

    def __init__(
        self,
        degree: int = 2,
        *,
        n_directions: int | str | Sequence[int | str] = "auto",
        label_map: LabelMap = "tanh",
        correction: Literal["auto", "wick", "none"] = "auto",
        second_layer: Literal["least-squares", "in-sample", "shrinkage"] = "least-squares",
        cross_terms: bool | Literal["auto"] = "auto",
        linear_terms: bool = False,
        regularisation: float = 1e-6,
        held_back: float | int = 0.25,
        shuffle: bool = True,
        readout: Literal["spline", "none"] = "spline",
        selection: Literal["outliers", "forced", "modulus"] = "outliers",
        solver: Literal["auto", "lanczos", "dense", "gram", "power-iteration"] = "auto",
        tolerance: float = 1e-3,
        max_products: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.degree = degree
        self.n_directions = n_directions
        self.label_map = label_map
        self.correction = correction
        self.second_layer = second_layer
        self.cross_terms = cross_terms
        self.linear_terms = linear_terms
        self.regularisation = regularisation
        self.held_back = held_back
        self.shuffle = shuffle
        self.readout = readout
        self.selection = selection
        self.solver = solver
        self.tolerance = tolerance
        self.max_products = max_products
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn tags, with `poor_score`, because the estimator misses linear functions."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.target_tags.required = True
        return tags

    def fit(self, X: Array | Source, y: Array) -> LayerwiseSpectralRegressor:
        """Fit directions, second layer and readout to X of shape (n, d) and y of shape (n,)."""
        check_settings(self)
        wanted = directions_per_layer(self.n_directions, self.selection, self.solver)
        source, labels = validated_fit_input(self, X, y)
        needs_rows = self.second_layer == "least-squares" or self.readout == "spline"
        held_back = count_held_back(self.held_back, labels.size)
        if needs_rows and held_back == 0:
            raise InvalidParameter(
                f"held_back is {self.held_back} with n = {labels.size} samples, which keeps no row for "
                "the second layer or the readout. Raise held_back, or use second_layer="
                "'in-sample' or 'shrinkage' with readout='none'."
            )
        seed = seed_from(self.random_state)
        rng = random_stream(seed, "split") if self.shuffle else None
        sizes = part_sizes(labels.size, held_back, len(wanted))
        *spectral, fresh = split_rows(source, labels, sizes, rng)
        self.layers_ = self._fit_layers(spectral, wanted, seed)
        self._publish()
        # A layer that got no rows of its own uses the rows of the first layer.
        last = spectral[-1] if spectral[-1].labels.size else spectral[0]
        self._fit_output(last, fresh)
        return self

    def _fit_layers(
        self, parts: list[Part], wanted: list[int | Literal["auto"]], seed: int
    ) -> list[SpectralLayer]:
        """Fit the spectral layers in order; stop after a layer that finds no feature."""
        layers: list[SpectralLayer] = []
        for depth, count in enumerate(wanted):
            degree = self.degree if depth == 0 else 2
            settings = LayerSettings(
                n_directions=count,
                selection=self.selection,
                label_map=self.label_map,
                correction=correction_for(self.correction, degree, layers),
                solver=self.solver,
                tolerance=self.tolerance,
                max_products=self.max_products,
            )
            part = parts[depth] if parts[depth].labels.size else parts[0]
            centre = scale = None
            if depth:
                part, centre, scale = inputs_of_next_layer(part, layers)
            rng = random_stream(seed, "solver", depth)
            layers.append(
                fit_spectral_layer(
                    part, degree, settings, rng, centre=centre, scale=scale, seen=self._seen
                )
            )
            if not layers[-1].eigenvalues.size:
                self._warn_of_nothing(depth, layers[-1])
                break
        return layers

    def _seen(self, operator: MomentOperator) -> None:
        """Do nothing; a subclass may keep the moment operator of each layer."""

    def _warn_of_nothing(self, depth: int, layer: SpectralLayer) -> None:
        nearest = layer.rejected[0].message if layer.rejected else "there is no candidate"
        warnings.warn(
            f"layer {depth + 1} found no feature among {layer.features.n_features} directions with "
            f"{layer.n_samples} samples; predictions are the mean label. Nearest candidate: {nearest}",
            NoFeatureFound,
            stacklevel=4,
        )

    def _publish(self) -> None:
        """Copy the first layer's attributes to the estimator, and add up the products of all layers."""
        first = self.layers_[0]
        self.directions_ = first.directions
        self.eigenvalues_ = first.eigenvalues
        self.bulk_edges_ = first.bulk_edges
        self.noise_edges_ = first.noise_edges
        self.noise_scale_ = first.noise_scale
        self.rejected_ = first.rejected
        self.route_ = first.route
        self.n_products_ = sum(layer.products for layer in self.layers_)
        self._n_features_out = int(self.layers_[-1].eigenvalues.size)

    def _fit_output(self, spectral: Part, fresh: Part) -> None:
        """Fit the second layer and the readout."""
        self.readout_ = None
        if not self._n_features_out:
            both = np.concatenate([spectral.labels, fresh.labels])
            self.second_layer_ = constant_layer(float(both.mean()))
            return
        latent = StoredLatent(fresh, self.layers_, self._n_features_out)
        self.second_layer_ = self._fit_second_layer(spectral, latent)
        if self.readout == "spline":
            index = np.concatenate([self.second_layer_(block) for block, _ in latent])
            self.readout_ = fit_spline_readout(index, fresh.labels)

    def _fit_second_layer(self, spectral: Part, latent: StoredLatent) -> SecondLayer:
        if self.second_layer != "least-squares":
            _, mean, scale = standardise(spectral.labels)
            last = self.layers_[-1]
            return layer_from_spectrum(last, self.second_layer, mean=mean, scale=scale)
        rows = latent.part.labels.size
        return fit_least_squares(
            latent,
            self._n_features_out,
            cross_terms=wants_cross_terms(
                self.cross_terms, self._n_features_out, rows, linear_terms=self.linear_terms
            ),
            linear_terms=self.linear_terms,
            regularisation=self.regularisation,
        )

    def transform(self, X: Array | Source) -> np.ndarray:
        r"""Return latent features :math:`\hat h` of the last spectral layer, float64, shape (n, k)."""
        check_is_fitted(self)
        source = validated_input(self, X)
        latent = np.empty((source.n_samples, self._n_features_out))
        for part, block in latent_chunks(source, self.layers_):
            latent[part] = block
        return latent

    def predict(self, X: Array | Source) -> np.ndarray:
        """Predict labels, float64, shape (n,), chunk by chunk."""
        check_is_fitted(self)
        source = validated_input(self, X)
        predictions = np.empty(source.n_samples)
        for part, block in latent_chunks(source, self.layers_):
            index = self.second_layer_(block)
            predictions[part] = index if self.readout_ is None else self.readout_(index)
        return predictions


def check_settings(estimator: Any) -> None:
    """Raise an error if a hyper-parameter is outside its documented range."""
    choices: dict[str, tuple[str, ...]] = {
        "correction": ("auto", "wick", "none"),
        "second_layer": ("least-squares", "in-sample", "shrinkage"),
        "readout": ("spline", "none"),
        "selection": ("outliers", "forced", "modulus"),
        "solver": ("auto", "lanczos", "dense", "gram", "power-iteration"),
    }
    for name, allowed in choices.items():
        value = getattr(estimator, name)
        if not isinstance(value, str) or value not in allowed:
            raise InvalidParameter(unknown_choice(name, value, allowed))
    if estimator.degree not in (1, 2, 3) or isinstance(estimator.degree, bool):
        raise InvalidParameter(f"degree is {estimator.degree!r}; allowed: 1, 2, 3.")
    if not _is_real(estimator.regularisation) or not 0 <= estimator.regularisation < np.inf:
        raise InvalidParameter(
            f"regularisation is {estimator.regularisation!r}; allowed: a finite number of at least "
            "0."
        )
    if not _is_real(estimator.tolerance) or not 0 <= estimator.tolerance < 1:
        raise InvalidParameter(
            f"tolerance is {estimator.tolerance!r}; allowed: at least 0 and below 1."
        )
    for name in ("shuffle", "linear_terms", "cross_terms"):
        value = getattr(estimator, name)
        automatic = name == "cross_terms" and isinstance(value, str) and value == "auto"
        if not automatic and not isinstance(value, (bool, np.bool_)):
            choice = "'auto', True, False" if name == "cross_terms" else "True, False"
            raise InvalidParameter(f"{name} is {value!r}; allowed: {choice}.")


def directions_per_layer(
    n_directions: Any, selection: str, solver: str = "auto"
) -> list[int | Literal["auto"]]:
    """Number of directions, or "auto", for each spectral layer."""
    entries = list(n_directions) if isinstance(n_directions, (tuple, list)) else [n_directions]
    if not entries:
        raise InvalidParameter("n_directions is empty; allowed: one entry per spectral layer.")
    checked: list[int | Literal["auto"]] = []
    for entry in entries:
        whole = isinstance(entry, (int, np.integer)) and not isinstance(entry, (bool, np.bool_))
        if whole and entry >= 1:
            checked.append(int(entry))
        elif not (isinstance(entry, str) and entry == "auto"):
            raise InvalidParameter(
                f"n_directions is {n_directions!r}; allowed: 'auto', an integer of at least 1, or "
                "a tuple of these, one per spectral layer."
            )
        elif selection != "outliers" or solver == "power-iteration":
            raise InvalidParameter(
                f"n_directions is 'auto' with selection={selection!r} and solver={solver!r}; with "
                "these settings only integers of at least 1 are allowed. Give the number of "
                "directions, or use selection='outliers' and another solver."
            )
        else:
            checked.append("auto")
    return checked


def correction_for(correction: str, degree: int, below: Sequence[SpectralLayer]) -> Correction:
    """Correction of a layer: none at degree 1, and none for deeper layers with fewer than 20 inputs."""
    # The correction lowers the eigenvalue of a feature by a fraction of about 7/d at degree 2 and 12/d at
    # degree 3, which is too much for a deeper layer with few inputs.
    if below and below[-1].eigenvalues.size < 20:
        return "none"
    if correction == "auto":
        return "wick" if degree == 2 else "none"
    return "wick" if correction == "wick" and degree > 1 else "none"


def _is_real(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating))
    return number and not isinstance(value, (bool, np.bool_))
