"""Parameters of the system `quadratic-network`, and its axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from solvable.frame.curves import Axis
from solvable.frame.parameters import Limit, Parameters, Size, memory


class QuadraticParameters(Parameters):
    """Parameters of a quadratic network."""

    target: Literal["marchenko-pastur", "power-law"] = "marchenko-pastur"
    """Spectrum of the target: a network of `width_ratio` times d random units, or i^-gamma."""
    dimension: int = Field(100, ge=4, le=1_000_000)
    """Number d of input coordinates; above 2000 only `solvable theory` runs."""
    width_ratio: float = Field(0.2, gt=0, le=100)
    """Units per input coordinate, p*/d, of the network behind a Marchenko-Pastur target."""
    exponent: float = Field(1.0, gt=0.5, le=20)
    """Exponent gamma of the eigenvalues of a power-law target, s_i ~ i^-gamma."""
    sample_ratio: float = Field(0.5, gt=0, le=1e9)
    """Samples per squared dimension, n/d²."""
    samples: int = Field(0, ge=0, le=10**13)
    """Number n of samples; replaces `sample_ratio`. 0 means `sample_ratio` times d²."""
    noise: float = Field(0.5, ge=0, le=1e6)
    """Variance Delta of the label noise."""
    regularisation: float = Field(0.02, ge=1e-100, le=1e6)
    """Penalty of the trace: weight decay times the square root of p/d, p the number of units."""
    regularisation_unit: Literal["one", "1/d", "sqrt(d)", "best"] = "one"
    """Unit of `regularisation`: tied to d, or the predicted penalty of least error at each n."""
    sensing: Literal["network", "goe"] = "network"
    """Measurement matrices: x x^T of samples, or independent Gaussian matrices as a control."""
    network_samples: int = Field(0, ge=0, le=10**6)
    """Largest n at which the weights of a network are trained as well; 0 for never."""
    network_solver: Literal["l-bfgs", "gradient-descent"] = "l-bfgs"
    """Training of the network of `network_samples`."""
    network_ratio: float = Field(1.0, gt=0, le=10)
    """Units per input coordinate, p/d, of the network of `network_samples`."""
    bayes_samples: int = Field(0, ge=0, le=10**6)
    """Largest n at which Bayes-optimal message passing runs as well; 0 for never."""
    noiseless_samples: int = Field(0, ge=0, le=10**9)
    """Smallest n at which a low-rank target is fitted without label noise as well; 0 for never."""

    @model_validator(mode="before")
    @classmethod
    def _ratio_of_samples(cls, values: Any) -> Any:
        """Set the sample ratio from the number of samples if that is given."""
        if not isinstance(values, Mapping):
            return values
        default = cls.model_fields["dimension"].default
        try:
            n, d = int(values.get("samples", 0)), int(values.get("dimension", default))
        except (TypeError, ValueError):
            return values  # an invalid field is reported later, by the field's own check
        return {**values, "sample_ratio": n / d**2} if n > 0 and d > 0 else values

    @model_validator(mode="after")
    def _best_needs_noise(self) -> QuadraticParameters:
        """Refuse the best penalty where no finite penalty is best."""
        if self.regularisation_unit == "best" and self.noise == 0:
            raise ValueError(
                "regularisation_unit is best and noise is 0; allowed: noise above 0, as without label "
                "noise the error falls with ever smaller penalties."
            )
        return self

    n_samples = Size("sample_ratio", "dimension", "dimension", least=1)
    target_units = Size("width_ratio", "dimension", floor=1)
    limits = (
        # Each iteration computes an eigendecomposition.
        Limit(lambda p: p.dimension, 2_000, "dimension is {dimension}", "dimension"),
        memory(
            lambda p: p.n_samples * p.dimension, 4,
            "{n_samples} samples of {dimension} coordinates", "sample_ratio or dimension", each=4,
        ),
        memory(
            lambda p: p.n_samples * p.dimension**2 if p.sensing == "goe" else 0, 2,
            "sensing=goe: {n_samples} matrices of size {dimension}",
            "sample_ratio or dimension, or take sensing=network",
        ),
    )  # fmt: skip

    @property
    def ratio(self) -> float:
        """Samples per squared dimension, after rounding to a whole number of samples."""
        return self.n_samples / self.dimension**2

    @property
    def low_rank(self) -> bool:
        """Return True if fewer samples than unknowns can determine the target without label noise."""
        return self.target == "marchenko-pastur" and self.target_rank < self.dimension

    @property
    def target_rank(self) -> int:
        """Number of features of the target."""
        if self.target == "power-law":
            return self.dimension
        return min(self.dimension, self.target_units)


def _words(setting: QuadraticParameters) -> str:
    """Describe a setting in words."""
    marchenko_pastur = setting.target == "marchenko-pastur"
    unit = {"one": "", "best": " of the best"}.get(
        setting.regularisation_unit, f" times {setting.regularisation_unit}"
    )
    words = [
        f"n/d² = {setting.ratio:.3g}", f"d = {setting.dimension}", f"{setting.target} target",
        f"width ratio {setting.width_ratio:g}" if marchenko_pastur else f"exponent {setting.exponent:g}",
        f"noise {setting.noise:g}", f"regularisation {setting.regularisation:g}{unit}",
    ]  # fmt: skip
    return ", ".join(words if setting.sensing == "network" else [*words, "Gaussian sensing"])


AXIS = Axis(
    "sample_ratio",
    "sample ratio n/d²",
    ignore=(
        "samples",
        "sensing",
        "network_samples",
        "network_solver",
        "network_ratio",
        "bayes_samples",
        "noiseless_samples",
    ),
    value=lambda setting: setting.ratio,
    point_name=_words,
    words={
        "target": "{}",
        "dimension": "d = {}",
        "width_ratio": "width ratio {:g}",
        "exponent": "exponent {:g}",
        "noise": "noise {:g}",
        "regularisation": "regularisation {:.3g}",
        "regularisation_unit": "in units of {}",
    },
    margin=1.15,
    resolution=25,
)
