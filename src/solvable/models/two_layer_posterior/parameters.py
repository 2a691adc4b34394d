"""Parameters of the system `curse-of-detail`."""

from __future__ import annotations

from math import sqrt
from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.parameters import Limit, Parameters, Size
from solvable.models.two_layer_posterior.large_deviation import Readout, readout_scale
from solvable.models.two_layer_posterior.overlap import neuron_overlap

HIDDEN_LAYER = ("width_ratio", "degree", "activation", "readout")
"""Parameters of networks with hidden layers, which attention does not use."""

ATTENTION = ("context", "heads")
"""Parameters of attention, which hidden layers do not use."""


class CurseParameters(Parameters):
    """Parameters of a Bayesian two-layer network, and of a Hermite target of one direction."""

    dimension: int = Field(10, ge=3, le=100)
    """Number d of input coordinates."""
    width_ratio: float = Field(10.0, gt=0, le=1_000)
    """Hidden units per input coordinate, N/d."""
    second_width_ratio: float = Field(0.0, ge=0, le=100)
    """Units of a second hidden layer per input coordinate, N2/d; 0 for one hidden layer."""
    gain: float = Field(0.0, ge=0, le=1_000)
    """Factor D of at least 1 that amplifies the variance of the first layer's weights along the target's
    direction. Kernels of random erf or relu networks are then measured, and nothing is trained. 0 for
    trained networks."""
    spike: int = Field(0, ge=0, le=10_000)
    """Number M of neurons of the first layer that point along the direction, if there is a gain."""
    scaled_samples: float = Field(20.0, gt=0, le=300)
    """Number of samples P over kappa sqrt(N d), or over kappa N sqrt(d) with a mean-field readout,
    where N is the width of the last hidden layer. Learning curves of all sizes coincide in this
    variable."""
    kappa: float = Field(0.5, ge=0.02, le=20)
    """Ridge, which is also the temperature of the dynamics and the variance of the label noise that
    the posterior assumes."""
    target: Literal["hermite", "parity", "attention"] = "hermite"
    """Target: He_m(w*.x) / sqrt(m!) of Gaussian inputs, or the parity x_1 x_2 of two inputs of +1 or -1,
    which needs relu and degree 2. `attention` is a cubic function of pairs of tokens, learnt by a block
    of softmax attention instead of hidden layers; `scaled_samples` is then P over
    kappa sqrt(H L d³)."""
    context: int = Field(4, ge=2, le=64)
    """Number L of tokens of an input of attention."""
    heads: int = Field(4, ge=1, le=64)
    """Number H of heads of attention."""
    degree: int = Field(3, ge=1, le=7)
    """Degree m of the target."""
    activation: Literal["erf", "tanh", "relu"] = "erf"
    """Activation of the hidden units. With erf and tanh the target's degree must be odd; with relu
    it must be 1 or even."""
    readout: Readout = "standard"
    """Prior variance of a readout weight: 1/N, or 1/N² (mean-field)."""
    start: Literal["both", "prior", "planted"] = "both"
    """Start of the networks: drawn from the prior, or with planted specialised neurons. With both, two
    networks run on the same samples; their agreement shows that they reached the posterior."""
    steps: int = Field(3_000, ge=100, le=100_000)
    """Number of Langevin steps. Averages are taken over the second half."""
    step: float = Field(1.0, ge=0.05, le=1)
    """Step size in units of the automatic step, which is at most the inverse of the largest curvature."""

    width = Size("width_ratio", "dimension", least=2, name="hidden units")
    second_width = Size("second_width_ratio", "dimension", name="units of the second layer")
    samples = Size("scaled_samples", "unit", least=4)
    # A replicate at this limit takes about twenty seconds.
    limits = (
        Limit(
            lambda p: p.work, 2e9,
            "{networks} networks of {width} units on {samples} samples for {steps} steps cost {cost:.1e} "
            "operations", "steps, width_ratio, scaled_samples or kappa",
        ),
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> CurseParameters:
        self._refuse_unused()
        if self.target != "attention":
            neuron_overlap(self.activation, self.degree, self.target)
        if self.target != "hermite" and (self.gain or self.second_width_ratio):
            raise ValueError(
                f"target={self.target!r} with gain={self.gain:g} and second_width_ratio="
                f"{self.second_width_ratio:g}; allowed: one trained hidden layer. Set both to 0."
            )
        trained_relu = self.activation == "relu" and not self.gain
        if self.second_width_ratio and (self.second_width < 2 or trained_relu):
            raise ValueError(
                f"second_width_ratio={self.second_width_ratio:g} gives {self.second_width} units of a "
                f"second layer with the activation {self.activation!r}; allowed: at least 2 units, and "
                "erf or tanh unless there is a gain. Set second_width_ratio=0 for one hidden layer."
            )
        if (self.gain or self.spike) and (
            self.gain < 1 or self.activation == "tanh" or self.spike > self.width
        ):
            raise ValueError(
                f"gain={self.gain:g} and spike={self.spike} with {self.width} neurons of the activation "
                f"{self.activation!r}; allowed: gain=0 and spike=0 for trained networks, or a gain of at "
                "least 1, at most as many neurons in the spike as in the layer, and erf or relu."
            )
        return self

    def _refuse_unused(self) -> None:
        """Refuse parameters of another target, other than the default: this target does not use them."""
        attends = self.target == "attention"
        for name in HIDDEN_LAYER if attends else ATTENTION:
            value, default = getattr(self, name), type(self).model_fields[name].default
            if value != default:
                why = "has no hidden layer and a cubic target" if attends else "has no attention"
                used = "set heads, context or dimension" if attends else "set target=attention"
                raise ValueError(
                    f"{name}={value!r} with target={self.target!r}, which {why}; allowed: the default "
                    f"{default!r}, as {name} has no effect. Leave {name} out, or {used}."
                )

    @property
    def widths(self) -> str:
        """Widths of the hidden layers, as text."""
        if self.target == "attention":
            return f"{self.heads} heads, {self.context} tokens"
        second = f" and {self.second_width}" if self.second_width else ""
        return f"N = {self.width}{second}"

    @property
    def kind(self) -> str:
        """Kind of the target and of the hidden units, as text."""
        if self.target == "attention":
            return "attention"
        return f"He{self.degree}, {self.activation}, {self.readout}"

    @property
    def last_width(self) -> int:
        """Number of units of the last hidden layer."""
        return self.second_width or self.width

    @property
    def unit(self) -> float:
        """Samples per unit of `scaled_samples`: kappa sqrt(chi N d), or kappa sqrt(H L d³)."""
        if self.target == "attention":
            return self.kappa * sqrt(self.heads * self.context * self.dimension**3)
        return self.kappa * sqrt(
            readout_scale(self.readout, self.last_width) * self.last_width * self.dimension
        )

    @property
    def networks(self) -> int:
        """Number of networks in one replicate."""
        return 2 if self.start == "both" else 1

    @property
    def work(self) -> float:
        """Cost of a replicate: hidden units times samples times steps, plus noise and calls."""
        if self.gain:
            return 100.0 * self.width * (self.dimension + self.second_width + 30)
        if self.target == "attention":
            per_head = self.samples * self.context * (2 * self.context + self.dimension)
            return float(self.steps * (self.networks * self.heads * per_head + 20_000))
        per_unit = self.samples * (1 + self.dimension / 100) + 2 * (self.dimension + 1)
        # a weight between hidden units costs a thirtieth of an activation
        per_unit += self.second_width * self.samples / 30
        per_layer = self.width * per_unit + self.second_width * self.samples
        return float(self.steps * (self.networks * per_layer + 8_000))
