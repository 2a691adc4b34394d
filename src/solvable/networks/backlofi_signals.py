r"""Backward signals: gradients of the output at the neurons of a layer, exact or approximate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from solvable.networks.backlofi_network import CoupledLayer, States

Signal: TypeAlias = Literal["local", "exact", "mean_field", "first_order"]
"""Approximation of the chain rule in a backward signal."""

SIGNALS: tuple[Signal, ...] = ("local", "exact", "mean_field", "first_order")
"""Names of the backward signals."""


@dataclass(frozen=True)
class ForwardGain:
    """Layers and mean gates of the network before coupling, for the first-order signal."""

    layers: tuple[CoupledLayer, ...]
    mean_gates: tuple[np.ndarray, ...]  # mean gate of each layer over the training rows, shape (p,)

    @classmethod
    def of(cls, layers: Sequence[CoupledLayer], states: States) -> ForwardGain:
        """Compute the mean gates from the states of the training rows."""
        gates = zip(layers, states.fields, strict=True)
        return cls(tuple(layers), tuple(layer.gate(h).mean(axis=0) for layer, h in gates))

    def at(self, level: int, coefficients: np.ndarray) -> np.ndarray:
        """Mean-field gradient of each output with respect to a layer's features, shape (S, p)."""
        gain = coefficients.T
        for upper in range(len(self.layers) - 1, level, -1):
            gain = self.layers[upper].pull_back(gain * self.mean_gates[upper])
        return np.asarray(gain)


def backward_signal(
    kind: Signal,
    layers: Sequence[CoupledLayer],
    states: States,
    labels: np.ndarray,
    coefficients: np.ndarray,
    level: int,
    forward: ForwardGain,
) -> np.ndarray:
    """Label-weighted gradient of the output at the pre-activations of a layer, shape (n, p)."""
    # Gamma_i = sum_c y_c g^c_i; at the top g^c = a_c * gate, below g = (g M^T) * gate, with
    # gate = sigma'(h)/sqrt(p) and M the weights from features to the pre-activations above (lofi 32).
    # "first_order" uses the written rows of the next layer only; the authors leave this open.
    gates = [layer.gate(fields) for layer, fields in zip(layers, states.fields, strict=True)]
    if kind == "local":  # Gamma = y * gate, without gradients of the layers above
        return np.asarray(
            _leading_label(states.features[level + 1], labels)[:, None] * gates[level]
        )
    if kind == "exact":
        signal = (labels @ coefficients.T) * gates[-1]
        for upper in range(len(layers) - 1, level, -1):
            signal = layers[upper].pull_back(signal) * gates[upper - 1]
        return np.asarray(signal)
    total = np.zeros_like(gates[level])
    for output in range(labels.shape[1]):
        readout = coefficients[:, output : output + 1]
        if kind == "mean_field":
            gain = _mean_field(layers, gates, readout, level)
        else:
            gain = _first_order(layers, gates, readout, level, forward)
        total += labels[:, output : output + 1] * gain
    return total


def _leading_label(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Combination of labels with the largest first moment; the label itself if there is only one."""
    if labels.shape[1] == 1:
        return labels[:, 0]
    return np.asarray(labels @ np.linalg.svd(features.T @ labels, full_matrices=False)[2][0])


def _mean_field(
    layers: Sequence[CoupledLayer], gates: Sequence[np.ndarray], readout: np.ndarray, level: int
) -> np.ndarray:
    # Replace the part through Gaussian lift rows by its mean over samples; keep the part through
    # written rows.
    gain = readout.T * gates[-1]
    for upper in range(len(layers) - 1, level, -1):
        layer = layers[upper]
        mean = layer.pull_back(gain.mean(axis=0, keepdims=True), "random")
        gain = (mean + layer.pull_back(gain, "written")) * gates[upper - 1]
    return np.asarray(gain)


def _first_order(
    layers: Sequence[CoupledLayer],
    gates: Sequence[np.ndarray],
    readout: np.ndarray,
    level: int,
    forward: ForwardGain,
) -> np.ndarray:
    # Mean-field gain of the network before coupling, plus the written rows of the layer above
    gain = forward.at(level, readout)
    if level < len(layers) - 1:
        above = forward.at(level + 1, readout) * gates[level + 1]
        gain = gain + layers[level + 1].pull_back(above, "written")
    return np.asarray(gain * gates[level])
