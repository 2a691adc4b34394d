r"""Outputs of a model: the conditional law of a label y given its index :math:`z=x\cdot w`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from solvable.arrays import check_real
from solvable.errors import InvalidData, InvalidParameter, quoted
from solvable.hermite import gaussian_quadrature, panel_nodes
from solvable.inference.pieces import Atom, Pieces, Prepared, Score, pieces_of
from solvable.inference.smooth import Likelihood, Linear, Noisy
from solvable.links import Link, make_link
from solvable.message_passing.outputs import GaussianOutput, Message, Messages

TWO_LABELS = ("sign", "logistic", "probit", "door")
"""Outputs with the labels +1 and -1, whose names are not formulas."""

LikelihoodFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Probability or density P(y|z) of labels given indices, by broadcasting."""


class Channel(Protocol):
    """Output for indices of variance 1."""

    @property
    def shown(self) -> float:
        """Limit c of v E(v) as v -> 0."""

    @property
    def noisy(self) -> bool:
        """Return True if no finite number of labels determines an index."""

    @property
    def prepared(self) -> Prepared:
        """Moments of a label before anything is known."""

    def information(self, v: float) -> float:
        """Information E[g²] of a label at cavity variance v."""

    def scores(self, labels: np.ndarray) -> Score:
        """Messages of observed labels."""


class Output:
    r"""Conditional law of a label y given its index :math:`z=x\cdot w`.

    Parameters
    ----------
    function : str
        ``"sign"`` (labels ±1; a tie counts as +1), ``"door"`` (+1 if :math:`|z|<` `width`, else -1),
        ``"logistic"`` (:math:`P(+1)=1/(1+e^{-\beta z})`), ``"probit"`` (the sign of z plus noise), or a
        name or formula of :func:`solvable.links.make_link`, such as ``"relu"`` or ``"abs(z)"``, which is
        not standardised.
    noise : float
        Variance of Gaussian noise: added to the index for ``"probit"``, to the label for formulas. A
        sign with additive noise is the formula ``"sign(z)"``.
    flips : float
        Probability from 0 to below 0.5 that the label of a sign or door is inverted.
    slope : float
        Slope :math:`\beta` of ``"logistic"``; 1 by default.
    width : float
        Half-width of ``"door"``. Indices have the variance of the prior's second moment.

    Raises
    ------
    InvalidParameter
        If an option is out of range or does not belong to the output.

    Notes
    -----
    Information of a label (inference 4) at cavity variance V: closed forms for atoms of the label,
    preimages for monotone pieces, quadrature with noise. Backed by ``tests/inference/test_outputs.py``.

    Examples
    --------
    >>> relu = Output("relu")  # half of the labels show the index, the others its sign
    >>> round(relu.information(0.5, 1.0), 4)
    1.4805
    >>> values, chances = Output("sign", flips=0.1).labels(0.3)
    >>> values.tolist(), chances.tolist()
    ([1.0, -1.0], [0.9, 0.1])
    """

    def __init__(
        self,
        function: str,
        *,
        noise: float = 0.0,
        flips: float = 0.0,
        slope: float | None = None,
        width: float | None = None,
    ) -> None:
        if not isinstance(function, str):
            raise InvalidParameter(
                f"the output is {quoted(function)}; allowed: a name or formula, as text. A likelihood of "
                "your own: Output.from_likelihood."
            )
        self.function = {"linear": "identity"}.get(function.strip().lower(), function.strip())
        self.noise, self.flips = float(noise), float(flips)
        self.slope = 1.0 if slope is None else float(slope)
        self.width = 1.0 if width is None else float(width)
        check_real("noise", noise, 0)
        self._check(slope, width)
        self._link: Link | None = None
        self._likelihood: LikelihoodFunction | None = None
        self._channels: dict[float, Channel] = {}
        self.label_values: np.ndarray | None = None
        if self.function in TWO_LABELS:
            self.label_values = np.array([1.0, -1.0])
            self._likelihood = partial(_two_labels, self)
        else:
            self._link = make_link(self.function, standardised=False)
        self._weights = np.ones(2)

    def _check(self, slope: float | None, width: float | None) -> None:
        name = self.function
        if not 0 <= self.flips < 0.5:
            raise InvalidParameter(
                f"flips is {self.flips}; allowed: a probability from 0 to below 0.5."
            )
        for option, given, owners in (
            ("flips", bool(self.flips), ("sign", "door")),
            ("slope", slope is not None, ("logistic",)),
            ("width", width is not None, ("door",)),
        ):
            if given and name not in owners:
                raise InvalidParameter(
                    f"{option} is given for the output {quoted(name)}; allowed: for "
                    f"{' and '.join(owners)}."
                )
        if self.noise and name in TWO_LABELS and name != "probit":
            raise InvalidParameter(
                f"noise is {self.noise} for the output {name!r}; allowed: 0. Use flips, 'probit' (noise "
                f"added to the index) or a formula such as 'sign(z)' (noise added to the label)."
            )
        if not (0 < self.slope < np.inf and 0 < self.width < np.inf):
            raise InvalidParameter(
                f"slope is {self.slope} and width is {self.width}; allowed: above 0."
            )

    @classmethod
    def from_link(cls, link: Link, *, noise: float = 0.0) -> Output:
        """Return the output of a link function, standardised or not, plus Gaussian noise."""
        self = cls("z", noise=noise)
        self.function, self._link = link.name, link
        return self

    @classmethod
    def from_likelihood(
        cls,
        likelihood: LikelihoodFunction,
        *,
        labels: Sequence[float] | None = None,
        interval: tuple[float, float] | None = None,
        name: str = "likelihood",
    ) -> Output:
        r"""Output of one's own, from the probability or density P(y|z) of a label.

        Parameters
        ----------
        likelihood : callable
            Maps arrays of labels and indices to P(y|z), by broadcasting.
        labels : sequence of float
            All label values, if these are discrete.
        interval : tuple of float
            Interval of labels otherwise, outside which the density is negligible.
        name : str
            Name in messages.

        Returns
        -------
        Output
            The output. Its information was compared with 20,000 draws.

        Raises
        ------
        InvalidParameter
            If values are NaN or negative, probabilities do not add up to 1, or draws disagree.

        Examples
        --------
        >>> import numpy as np
        >>> lazy = Output.from_likelihood(
        ...     lambda y, z: np.where(y == 0, 0.2, 0.8 / (1 + np.exp(-2 * y * z))), labels=[-1, 0, 1])
        >>> round(lazy.information(0.5, 1.0) / Output("logistic", slope=2).information(0.5, 1.0), 6)
        0.8
        """
        if (labels is None) == (interval is None):
            raise InvalidParameter(
                "give either `labels`, all values of discrete labels, or `interval`, the range of others."
            )
        self = cls.__new__(cls)
        self.function, self.noise, self.flips, self.slope, self.width = name, 0.0, 0.0, 1.0, 1.0
        self._link, self._likelihood, self._channels = None, likelihood, {}
        self.discrete = labels is not None
        if labels is not None:
            self.label_values = np.array(labels, dtype=np.float64)
            self._weights = np.ones(self.label_values.size)
        else:
            assert interval is not None
            self.label_values, self._weights = panel_nodes(np.linspace(*interval, 41), 6)
        self._check_likelihood()
        return self

    discrete = True

    def _check_likelihood(self) -> None:
        """Compare probabilities with 1, and the information with draws."""
        assert self._likelihood is not None
        assert self.label_values is not None
        z = np.linspace(-3, 3, 61)
        table = np.asarray(self._likelihood(self.label_values[:, None], z), dtype=np.float64)
        if table.shape != (self.label_values.size, z.size) or not np.isfinite(table).all():
            raise InvalidParameter(
                f"the likelihood of {self.function} returned NaN, infinity or shape {table.shape}; "
                f"allowed: one number per label and index, here shape {(self.label_values.size, 61)}."
            )
        off = np.abs(self._weights @ table - 1)
        if off.max() > 1e-3 or (table < 0).any():
            raise InvalidParameter(
                f"the probabilities of {self.function} add up to {1 + off.max():.6g} at z = "
                f"{z[off.argmax()]:.3g}, or one is negative; allowed: at least 0, with sum 1 over "
                "all labels, or integral 1 over `interval`; a fortieth of it is the smallest width of a "
                "density that is resolved."
            )
        rng, v = np.random.default_rng(0), 0.5
        omega = np.sqrt(1 - v) * rng.standard_normal(20_000)
        y = self.draw(omega + np.sqrt(v) * rng.standard_normal(omega.size), rng)
        squares = self.scores(y, omega, v) ** 2
        expected, error = self.information(v, 1.0), 5 * squares.std() / np.sqrt(omega.size)
        if abs(squares.mean() - expected) > error + 1e-3 * expected:
            raise InvalidParameter(
                f"the information of {self.function} is {expected:.4g} by quadrature and "
                f"{squares.mean():.4g} on draws; allowed: a likelihood that the quadrature resolves "
                "(no jumps, no scales below 0.01)."
            )

    def __repr__(self) -> str:
        shown = {"noise": 0.0, "flips": 0.0, "slope": 1.0, "width": 1.0}
        parts = [f"{k}={getattr(self, k):g}" for k, v in shown.items() if getattr(self, k) != v]
        return f"Output({', '.join([repr(self.function), *parts])})"

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Indices at which the label or its probabilities jump or have a kink."""
        if self._link is not None:
            return self._link.breakpoints
        return {"sign": (0.0,), "door": (-self.width, self.width)}.get(self.function, ())

    def labels(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Label values (m, k) and their probabilities (m, k) given indices (m,).

        Gaussian noise is represented by quadrature nodes, so that means over labels are weighted sums.
        """
        z = np.asarray(z, dtype=np.float64)
        if self._likelihood is not None:
            assert self.label_values is not None
            chances = self._likelihood(self.label_values, z[..., None]) * self._weights
            return np.broadcast_to(self.label_values, chances.shape), chances
        assert self._link is not None
        clean = self._link(z)[..., None]
        if not self.noise:
            return clean, np.ones_like(clean)
        nodes, chance = gaussian_quadrature(24)
        return clean + np.sqrt(self.noise) * nodes, np.broadcast_to(chance, (*z.shape, nodes.size))

    def draw(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels of indices, with the shape of z."""
        z = np.asarray(z, dtype=np.float64)
        if self._link is not None:
            clean = self._link(z)
            return (
                clean + np.sqrt(self.noise) * rng.standard_normal(z.shape) if self.noise else clean
            )
        values, chances = self.labels(z)
        reached = np.cumsum(chances, axis=-1)
        place = rng.random(z.shape) * reached[..., -1]
        k = (reached < place[..., None]).sum(axis=-1)
        if self.discrete:
            return np.take_along_axis(values, k[..., None], axis=-1)[..., 0]
        # inside the cell of a quadrature node
        edges = np.concatenate([[0.0], np.cumsum(self._weights)])
        low = np.take_along_axis(reached - chances, k[..., None], axis=-1)[..., 0]
        share = (place - low) / np.take_along_axis(chances, k[..., None], axis=-1)[..., 0]
        start = float(values.min()) - float(self._weights[0] / 2)
        return start + edges[k] + share * self._weights[k]

    def channel(self, variance: float) -> Channel:
        """Output as a function of z / sqrt(variance), the index divided by its standard deviation."""
        if variance not in self._channels:
            self._channels[variance] = self._standardised(float(np.sqrt(variance)))
        return self._channels[variance]

    def _standardised(self, scale: float) -> Channel:
        """Output of z / scale."""
        inf = np.inf
        if self.function == "sign" and self._likelihood is not None:
            both = (Atom(1.0, ((0.0, inf),)), Atom(-1.0, ((-inf, 0.0),)))
            return Pieces(both, flips=self.flips)
        if self.function == "probit":
            both = (Atom(1.0, ((0.0, inf),)), Atom(-1.0, ((-inf, 0.0),)))
            return Pieces(both, blur=self.noise / scale**2)
        if self.function == "door":
            w = self.width / scale
            return Pieces(
                (Atom(1.0, ((-w, w),)), Atom(-1.0, ((-inf, -w), (w, inf)))), flips=self.flips
            )
        if self._likelihood is not None:
            assert self.label_values is not None
            likelihood = self._likelihood
            return Likelihood(
                lambda y, z: likelihood(y, scale * z), self.label_values, self._weights
            )
        if self.function in ("identity", "z") and self.noise:
            return _Scaled(Linear(self.noise / scale**2), scale)
        link = self._link
        assert link is not None
        points = tuple(point / scale for point in link.breakpoints)
        output = GaussianOutput(lambda z: link(scale * z[..., 0]), self.noise, 1, points)
        return Noisy(output) if self.noise else pieces_of(output)

    def messages(self, labels: np.ndarray, second_moment: float = 1.0) -> Messages:
        """Messages of labels (n,) in the loop of message passing, from cavity means (n, 1)."""
        scale, scores = np.sqrt(second_moment), self.channel(second_moment).scores(labels)

        def given(omega: np.ndarray, V: np.ndarray) -> Message:
            g, slope = scores(omega[:, 0] / scale, float(V[0, 0]) / second_moment)
            return Message(g[:, None] / scale, np.array([[slope / second_moment]]))

        return given

    def information(self, V: float, second_moment: float) -> float:
        """Information E[g²] of a label at cavity variance V, for indices of a given second moment."""
        if not 0 < V <= second_moment:
            raise InvalidParameter(
                f"V is {V} for indices of second moment {second_moment}; allowed: above 0, up to it."
            )
        return self.channel(second_moment).information(V / second_moment) / second_moment

    def scores(self, labels: np.ndarray, omega: np.ndarray, V: float) -> np.ndarray:
        """Messages g = (E[z | y] - omega) / V of labels, for z of mean omega and variance V."""
        y = np.asarray(labels, dtype=np.float64)
        if not np.isfinite(y).all():
            raise InvalidData("a label is NaN or infinite; allowed: finite labels.")
        return self.channel(1.0).scores(y)(np.asarray(omega, dtype=np.float64), V)[0]


class _Scaled:
    """Linear channel in units of the index."""

    def __init__(self, channel: Linear, scale: float) -> None:
        self.channel, self.scale = channel, scale
        self.shown, self.noisy, self.information = 0.0, True, channel.information

    @cached_property
    def prepared(self) -> Prepared:
        """Moments of a label before anything is known."""
        first, second, entropy = self.channel.prepared
        return Prepared(first, second, entropy + float(np.log(self.scale)))

    def scores(self, labels: np.ndarray) -> Score:
        """Messages of observed labels."""
        return self.channel.scores(labels / self.scale)


def _two_labels(output: Output, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Probabilities of the labels +1 and -1."""
    from scipy.special import expit, ndtr

    if output.function == "logistic":
        return np.asarray(expit(output.slope * y * z))
    if output.function == "probit" and output.noise:
        return np.asarray(ndtr(y * z / np.sqrt(output.noise)))
    plus = np.abs(z) < output.width if output.function == "door" else z >= 0
    return np.where(plus == (y > 0), 1 - output.flips, output.flips)
