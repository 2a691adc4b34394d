"""Parameters of the system `random-hierarchy`, and its axis."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from solvable.errors import InvalidParameter
from solvable.frame.curves import Axis
from solvable.frame.parameters import Limit, Parameters, Size, memory
from solvable.models.hierarchy.grammar.boolean import recovery_threshold
from solvable.models.hierarchy.rules import LARGEST_TUPLES, check_existence

POSITIONS = {"layerwise": ("first", "shared"), "count-cluster": ("concat", "first", "pooled")}
"""Values of `positions` of the estimators that have a choice, the default first."""

SPARSE = ("count-cluster", "cnn", "locally-connected")
"""Estimators that are measured on strings with blanks."""

LARGEST_FIT = {
    "layerwise": 1_000_000,
    "count-cluster": 10_000_000,
    "kernel": 12_000,
    "lazy-cnn": 8_000,
    "cnn": 500_000,
    "locally-connected": 500_000,
    "fully-connected": 500_000,
    "shallow": 500_000,
    "transformer": 500_000,
}
"""Largest number of strings to which each estimator is fitted."""


def fit_limit(estimator: str, most: int) -> Limit:
    """Limit the strings to which an estimator is fitted."""
    return Limit(
        lambda p: p.n_samples if (p.task, p.estimator) == ("classification", estimator) else 0,
        most,
        "estimator={estimator} is given {n_samples} strings",
        "samples, sample_ratio, rules or depth",
        unit=" strings",
    )


def as_list(values: np.ndarray) -> list[float | None]:
    """Convert to a list, with None for what is not finite."""
    return [float(value) if np.isfinite(value) else None for value in np.asarray(values)]


class RandomHierarchyParameters(Parameters):
    """Parameters of a random grammar, a task on its strings, and a learner."""

    task: Literal["classification", "next-token", "denoising", "boolean"] = "classification"
    """Task: predict the label, the last symbol of a string, or all symbols of a noisy string, or find
    the products of a deep quadratic target of 2^L signs. For the last symbol a network is trained on up
    to 20,000 strings."""
    vocabulary: int = Field(8, ge=2, le=1_000_000)
    """Number V of symbols of each level below the label."""
    rules: int = Field(4, ge=2, le=1_000_000)
    """Number m of rules of each symbol: tuples that it may become."""
    branching: int = Field(2, ge=2, le=8)
    """Number s of symbols in a tuple."""
    depth: int = Field(3, ge=1, le=20)
    """Number L of levels below the label; a string has s^L symbols."""
    classes: int = Field(0, ge=0, le=1_000_000)
    """Number n_c of labels; 0 means as many as symbols."""
    sample_ratio: float = Field(4.0, gt=0, le=1e9)
    """Training strings in units of P* = n_c m^L; for task=boolean, samples in units of n*."""
    samples: int = Field(0, ge=0, le=10**15)
    """Number N of training strings; replaces `sample_ratio`. 0 means `sample_ratio` times P*."""
    ensemble: Literal["first", "uniform", "latin"] = "first"
    """Law of the rules: each symbol equally often the first of a tuple, all tuples equally likely, or
    rules by a Latin square, whose single symbols are not correlated with the label."""
    estimator: Literal[
        "layerwise",
        "count-cluster",
        "kernel",
        "lazy-cnn",
        "cnn",
        "locally-connected",
        "fully-connected",
        "shallow",
        "transformer",
    ] = "layerwise"
    """Learner: layer-wise ridge regression on RBF features, counting and clustering, a tuned kernel,
    the neural tangent kernel of a convolutional network, or a network trained by gradient descent;
    locally-connected is a convolutional network without weight sharing; shallow has one hidden layer."""
    positions: Literal["default", "first", "concat", "shared", "pooled"] = "default"
    """Patches of a string from which a level is learned; by default the first one for `layerwise`, and
    all of them, with separate counts, for `count-cluster`."""
    zipf: float = Field(0.0, ge=0, le=5)
    """Exponent a of the probabilities k^-(1 + a) of the rules of the last level; 0 for equal ones."""
    blanks: int = Field(0, ge=0, le=100)
    """Number s_0 of blanks per symbol of a tuple, which lies at a random one of s_0 + 1 places
    (sparse random hierarchy); above 0 for count-cluster, cnn and locally-connected."""
    noise_level: float = Field(0.5, ge=0, le=1)
    """Probability epsilon that the evidence on a symbol is replaced by that on a random one, for
    task=denoising; for other tasks it is set to its default."""

    @model_validator(mode="before")
    @classmethod
    def _ratio_of_samples(cls, values: Any) -> Any:
        """Set the sample ratio from the number of samples if that is given."""
        if not isinstance(values, Mapping):
            return values
        if values.get("task") == "boolean":
            return values
        given = {
            name: values.get(name, cls.model_fields[name].default)
            for name in ("samples", "vocabulary", "classes", "rules", "depth")
        }
        try:
            n, V, n_c, m, L = (int(value) for value in given.values())
        except (TypeError, ValueError):
            return values  # an invalid field is reported later, by the field's own check
        usable = n > 0 and m > 0 and 0 < L <= 20 and (n_c or V) > 0
        return {**values, "sample_ratio": n / ((n_c or V) * m**L)} if usable else values

    @model_validator(mode="after")
    def _check(self) -> RandomHierarchyParameters:
        # A grid over several tasks would otherwise repeat each task for parameters that it ignores.
        unused: tuple[str, ...] = ("noise_level",)
        if self.task == "denoising":
            unused = ("sample_ratio", "samples", "estimator", "positions")
        elif self.task == "boolean":
            # all but the task, the depth and the number of samples
            unused = tuple(
                set(type(self).model_fields) - {"task", "depth", "sample_ratio", "samples"}
            )
            if self.samples:
                object.__setattr__(self, "sample_ratio", self.samples / self.threshold)
        for name in unused:
            object.__setattr__(self, name, type(self).model_fields[name].default)
        if self.classes == 1:
            raise ValueError(
                "classes is 1; allowed: at least 2, or 0 for as many classes as symbols"
            )
        try:
            check_existence(
                self.vocabulary, self.rules, self.branching, self.depth, self.n_classes,
                self.ensemble,
            )  # fmt: skip
        except InvalidParameter as error:
            raise ValueError(str(error).rstrip(".")) from error
        allowed = ("default", *POSITIONS.get(self.estimator, ()))
        if self.positions not in allowed:
            raise ValueError(
                f"positions is {self.positions} with estimator={self.estimator}; allowed: "
                f"{', '.join(allowed)}"
            )
        if self.task == "classification" and self.n_samples < self.n_classes:
            raise ValueError(
                f"there are {self.n_samples} strings and {self.n_classes} classes; allowed: at least "
                "one string per class, so a larger sample_ratio or samples"
            )
        if self.task != "classification" and self.zipf:
            raise ValueError(f"zipf is {self.zipf} with task={self.task}; allowed: zipf=0")
        if self.blanks and self.task != "classification":
            raise ValueError(f"blanks is {self.blanks} with task={self.task}; allowed: blanks=0")
        if self.blanks and self.zipf:
            raise ValueError(f"zipf is {self.zipf:g} with blanks={self.blanks}; allowed: zipf=0")
        if self.blanks and self.estimator not in SPARSE:
            raise ValueError(
                f"estimator is {self.estimator} with blanks={self.blanks}; allowed: {', '.join(SPARSE)}"
            )
        if self.task == "boolean":
            return self
        networks = ("cnn", "fully-connected", "transformer")
        if self.task == "next-token" and self.estimator not in networks:
            raise ValueError(
                f"estimator is {self.estimator} with task=next-token; allowed: {', '.join(networks)}"
            )
        return self

    n_samples = Size("sample_ratio", lambda p: p.threshold, least=1, name="training strings")
    limits = (
        Limit(lambda p: p.vocabulary, 4_096, "vocabulary is {vocabulary}", "vocabulary"),
        Limit(
            lambda p: p.depth if p.task == "boolean" else 0, 9,
            "a deep quadratic target has 2^{depth} signs", "depth", unit=" levels",
        ),
        Limit(lambda p: p.leaves, 2**16, "strings have {leaves} symbols", "depth or branching"),
        memory(
            lambda p: (p.n_classes + (p.depth - 1) * p.vocabulary) * p.rules * p.branching, 1,
            "the rules of all levels", "rules, vocabulary or classes",
        ),
        memory(
            lambda p: p.n_samples * p.leaves, 2,
            "{n_samples} strings of {leaves} symbols", "sample_ratio or depth", each=4,
        ),
        memory(
            lambda p: p.n_classes**2 * p.rules * p.width**p.branching if p.blanks else 0, 1,
            "counts of labels for tuples with the places of their symbols", "blanks or vocabulary",
        ),
        Limit(
            lambda p: p.patch * np.log2(p.vocabulary + 2) if p.estimator == "count-cluster" else 0,
            LARGEST_TUPLES, "patches of {patch} places have 2^{cost:.0f} possible contents",
            "blanks or branching", unit=" base-2 digits",
        ),
        *(fit_limit(estimator, most) for estimator, most in LARGEST_FIT.items()),
    )  # fmt: skip

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.classes or self.vocabulary

    @property
    def threshold(self) -> float:
        """P* = n_c m^L as a float; for task=boolean, n* = 8 (d - 1) log(d² / 2) with d = 2^L."""
        if self.task == "boolean":
            return recovery_threshold(dimension=self.leaves, squared_norm=self.leaves - 1)
        size = self.n_classes * self.rules**self.depth
        return float(size) if size < 2**1000 else inf

    @property
    def width(self) -> int:
        """Number of places of a symbol in the patch of its parent, s_0 + 1."""
        return self.blanks + 1

    @property
    def patch(self) -> int:
        """Number of places of a patch."""
        return self.branching * self.width

    @property
    def leaves(self) -> int:
        """Number of places of a string."""
        return int(self.patch**self.depth)

    @property
    def sparsity_power(self) -> int | None:
        """Power k of the factor (s_0 + 1)^k by which blanks multiply the strings that a learner needs."""
        return {
            # (hierarchy 28) for networks, (hierarchy 36) for counted tuples
            ("cnn", ""): 2,
            ("locally-connected", ""): self.depth,
            ("count-cluster", "pooled"): self.branching,
            ("count-cluster", "first"): self.branching + self.depth - 1,
        }.get((self.estimator, self.chosen_positions))

    @property
    def ratio(self) -> float:
        """Training strings over P*, after rounding to a whole number."""
        return self.n_samples / self.threshold

    @property
    def chosen_positions(self) -> Any:
        """Value of `positions`, with the default resolved."""
        if self.positions == "default":
            return POSITIONS.get(self.estimator, ("",))[0]
        return self.positions


def _point_name(setting: RandomHierarchyParameters) -> str:
    """Describe a setting in words."""
    if setting.task == "boolean":
        return f"n/n* = {setting.ratio:.3g}, d = {setting.leaves}"
    words = [
        f"V = {setting.vocabulary}", f"m = {setting.rules}", f"s = {setting.branching}",
        f"L = {setting.depth}",
    ]  # fmt: skip
    if setting.classes:
        words.append(f"{setting.classes} classes")
    if setting.blanks:
        words.append(f"{setting.blanks} blanks per symbol")
    if setting.task == "denoising":
        return ", ".join([f"noise level {setting.noise_level:g}", *words])
    return ", ".join([f"N/P* = {setting.ratio:.3g}", setting.estimator, *words])


AXIS = Axis(
    "sample_ratio",
    "sample ratio N/P*",
    ignore=("samples",),
    value=lambda setting: setting.ratio,
    point_name=_point_name,
    words={
        "sample_ratio": "",
        "task": "{}",
        "vocabulary": "V = {}",
        "rules": "m = {}",
        "branching": "s = {}",
        "depth": "L = {}",
        "classes": "{} classes",
        "ensemble": "{} rules",
        "estimator": "{}",
        "positions": "positions: {}",
        "zipf": "Zipf exponent {:g}",
        "blanks": "{} blanks per symbol",
        "noise_level": "noise level {:g}",
    },
    margin=1.2,
    resolution=40,
)
