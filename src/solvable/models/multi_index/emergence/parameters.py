"""Parameters of the system `emergence-in-sgd`."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from solvable.frame.parameters import Limit, Parameters, Size
from solvable.models.multi_index.emergence.link import amplitudes, even_link


class EmergenceParameters(Parameters):
    """Parameters of a teacher with orthonormal features, and of a network trained on fresh samples."""

    dimension: int = Field(48, ge=4, le=4096)
    """Number d of input coordinates."""
    features: int = Field(6, ge=1, le=4096)
    """Number P of features of the teacher."""
    decay: float = Field(1.0, ge=0.0, le=3.0)
    """Exponent beta of the amplitudes p^-beta, which are scaled so that their squares sum to 1."""
    link: Literal["he4", "he6", "cosmix"] = "he4"
    """Link of teacher and student: h_4, h_6, or cos(z) - exp(3/2)/4 cos(2 z), standardised."""
    width: int = Field(24, ge=1, le=4096)
    """Number m of students (hidden neurons)."""
    time: float = Field(10.0, gt=0.0, le=1e6)
    """Training time, which is the learning rate times the number of steps."""
    learning_rate: float = Field(0.01, ge=1e-100, le=0.05)
    """Learning rate of both layers."""
    tuned: bool = False
    """Divide the learning rate by the training time (if the time is above 1), which is inversely
    proportional to the amplitude of the weakest feature that emerges in this time."""
    batch: int = Field(1600, ge=1, le=10**7)
    """Number of fresh samples per step; the noise of the gradient grows as learning_rate / batch."""
    noise: float = Field(0.0, ge=0.0, le=100.0)
    """Variance of the label noise; the labels of the teacher have variance 1."""
    initial_norm: float = Field(0.02, ge=1e-6, le=0.5)
    """Squared norm of every student at the start."""

    steps = Size("time", lambda p: 1 / p.rate, floor=1)
    # 1e15 multiplications take hours on two cores.
    limits = (
        Limit(
            lambda p: 4.0 * p.samples * p.dimension * p.width, 1e15,
            "training takes {cost:.1e} multiplications",
            "time, batch, dimension or width, or raise learning_rate",
        ),
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> EmergenceParameters:
        if self.features > self.dimension:
            raise ValueError(
                f"features is {self.features}; allowed: up to dimension = {self.dimension}, since the "
                "directions of the teacher are orthonormal"
            )
        allowed = 0.2 / even_link(self.link).activity
        if self.learning_rate > allowed:
            raise ValueError(
                f"learning_rate is {self.learning_rate:g}; allowed for the link {self.link}: up to "
                f"{allowed:.3g}, since larger steps overshoot a learned feature"
            )
        if self.time < self.rate:
            raise ValueError(
                f"time is {self.time:g}, less than one step; allowed: at least learning_rate = "
                f"{self.learning_rate:g}"
            )
        return self

    @property
    def rate(self) -> float:
        """Learning rate of this training time."""
        return self.learning_rate / max(self.time, 1.0) if self.tuned else self.learning_rate

    @property
    def strengths(self) -> np.ndarray:
        """Amplitudes of the teacher's features."""
        return amplitudes(self.features, self.decay)

    @property
    def courses(self) -> dict[str, Any]:
        """Settings used by the theory of independent features and by gradient descent on all pairs."""
        return {
            "initial_norm": self.initial_norm,
            "dimension": self.dimension,
            "gradient_noise": self.rate / self.batch,
            "label_noise": self.noise,
        }

    @property
    def samples(self) -> int:
        """Total number of fresh samples used in training."""
        return self.steps * self.batch
