"""Parameters of the system `neural-lofi-images`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from solvable.frame.parameters import Parameters

ROWS = {"digits": 1_797, "mnist-5k": 5_000}
"""Number of images in each data set."""

MOST_TESTED = 2_000
"""Largest number of test images of a replicate."""

DIRECTIONS = (5, 10, 20, 40, 80, 160, 320)
"""Default numbers of kept directions; only numbers up to half of the sample size are used."""

PATCH_DIRECTIONS = 11
"""Number of kept directions of convolutional filters, in addition to the first moment."""

TRAINED_STEPS = (1, 5, 15, 40)
"""Steps of gradient descent after which the change of the weights is compared with the filter."""

LAYER_STEPS = (1, 5)
"""Steps after which the changes of both layers of a network with two hidden layers are compared."""

ALIGNED_DIRECTIONS = 11
"""Number of leading directions that are compared: the first moment and ten eigenvectors."""

USUAL_DIRECTIONS = 40
"""Number of kept directions at which methods are compared."""


class NeuralLoFiImagesParameters(Parameters):
    """Parameters of networks with filters on images of digits."""

    data: Literal["digits", "mnist-5k"] = "digits"
    """Data set: 1,797 images of 8 x 8 pixels, or 5,000 of 28 x 28 (needs the extra `data`)."""
    task: Literal["even-odd", "ten-class"] = "even-odd"
    """Labels to predict: even or odd digit, or each of the ten digits."""
    samples: int = Field(600, ge=50, le=4_000)
    """Number n of training images."""
    directions: int = Field(0, ge=0, le=1_000)
    """Number k of directions that each filter keeps; 0 means 5, 10, ..., 320 at infinite width and 40
    at finite width."""
    second_directions: int = Field(0, ge=0, le=1_000)
    """Number of directions that the second filter keeps; 0 means as many as the first."""
    penalty: float = Field(0.0, ge=0, le=1e6)
    """Ridge penalty of the readout, relative to the power of its features; 0 means leave-one-out."""
    coupling: Literal["none", "first_order", "mean_field", "exact", "local"] = "none"
    """Backward signal that replaces a fifth of the directions of each filter (BackLoFi), at finite width;
    none for forward filters alone."""
    filters: int = Field(2, ge=1, le=5)
    """Number of filters, each between two lifts (layers of random features)."""
    patch: int = Field(0, ge=0, le=9)
    """Odd side of the patches of convolutional lifts, which need a finite width; 0 for dense lifts."""
    width: int = Field(0, ge=0, le=100_000)
    """Number P of random features in each lift; 0 means infinitely many."""
    activation: Literal["relu", "tanh", "erf", "sigmoid", "gelu"] = "relu"
    """Activation of every lift."""
    depth: int = Field(3, ge=1, le=6)
    """Number of lifts in the network without filters."""

    @model_validator(mode="after")
    def _check(self) -> NeuralLoFiImagesParameters:
        left = ROWS[self.data] - self.samples
        if left < 200:
            raise ValueError(
                f"samples is {self.samples} of {ROWS[self.data]} images; allowed: up to "
                f"{ROWS[self.data] - 200}, which leaves 200 for testing"
            )
        if self.patch and not (self.patch % 2 and self.width):
            raise ValueError(
                f"patch is {self.patch} and width is {self.width}; allowed: an odd patch with a finite "
                "width, such as patch=5 width=100"
            )
        if self.coupling != "none" and (self.patch or not self.width):
            raise ValueError(
                f"coupling is '{self.coupling}' with width = {self.width} and patch = {self.patch}; "
                "allowed: a finite width with dense lifts, such as width=300 patch=0"
            )
        if self.samples * self.width > 10**8:
            raise ValueError(
                f"samples x width is {self.samples} x {self.width}; allowed: up to 1e8 features, 0.8 GB"
            )
        if self.second_directions and not (self.filters == 2 and self.directions):
            raise ValueError(
                f"second_directions is {self.second_directions} with filters = {self.filters} and "
                f"directions = {self.directions}; allowed: filters=2 and directions of at least 1"
            )
        most = min(self.samples, self.width or self.samples) // 2
        if most < 1:
            raise ValueError(
                f"width is {self.width} and samples {self.samples}; allowed: a width of 0 (infinite) or "
                "at least 2, and at least 2 samples, as a filter keeps at least one direction"
            )
        if max(self.directions, self.second_directions) > most:
            raise ValueError(
                f"directions is {self.directions} and second_directions is {self.second_directions}; "
                f"allowed here: up to {most}, half of the samples "
                "and of the width"
            )
        return self

    @property
    def kept(self) -> tuple[int, ...]:
        """Numbers of directions that a replicate tries."""
        if self.directions:
            return (self.directions,)
        most = min(self.samples, self.width or self.samples) // 2
        wanted = (USUAL_DIRECTIONS,) if self.width else DIRECTIONS
        if self.patch:
            wanted = (PATCH_DIRECTIONS,)
        return tuple(k for k in wanted if k <= most) or (most,)

    @property
    def trains_two_layers(self) -> bool:
        """Return True if a network of two hidden layers is trained: 2 seconds for 600 images."""
        forward = not (self.width or self.patch or self.second_directions)
        binary = self.task == "even-odd"
        return forward and binary and self.filters > 1 and self.samples >= 500

    @property
    def tested(self) -> int:
        """Number of test images of a replicate."""
        return min(MOST_TESTED, ROWS[self.data] - self.samples)

    @property
    def place(self) -> str:
        """Description of the setting in one line."""
        text = f"{self.data}, {self.task}, n = {self.samples}, "
        text += f"{self.filters} filter" + ("s" if self.filters > 1 else "")
        return text + (f", width {self.width}" if self.width else "")
