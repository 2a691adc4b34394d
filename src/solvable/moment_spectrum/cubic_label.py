"""What a mapped label keeps of each chaos of a cubic index, by regression on draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.moment_spectrum.cubic_forms import (
    CubicSample,
    crossed_contractions,
    double_traces,
    single_traces,
    tensors_of,
    traceless,
)
from solvable.moment_spectrum.cubic_population import CubicOperator


@dataclass(frozen=True)
class KeptChaoses:
    """What the mapped label keeps of each chaos of the index, pooled over first layers."""

    sixth: np.ndarray  # c_i
    couplings: np.ndarray  # gamma, (3, p): of each of the coupling directions
    fourth: tuple[float, float, float]  # isotropic, paired, rest
    second: tuple[float, float]  # isotropic, rest
    traced: tuple[float, float]  # of the sixth beyond that of c: along sym(I I I) and sym(I I Z)
    heights: np.ndarray  # <A_i, P A_i>


def kept_chaoses(
    samples: Sequence[CubicSample],
    mapped: Sequence[np.ndarray],
    weights: np.ndarray,
    *,
    corrected: bool,
) -> KeptChaoses:
    """Regress the mapped label T of some first layers on the chaoses of the index."""
    T = np.concatenate(mapped)
    index = np.concatenate([(sample.latent**2 - 1) @ weights / np.sqrt(2) for sample in samples])

    def mean(name: str, exact: np.ndarray) -> np.ndarray:
        """E[T values], with the index as control variate, whose mean is known."""
        values = np.concatenate([np.asarray(getattr(sample, name)) for sample in samples])
        return _controlled(T, index, values, exact)

    R = np.mean([crossed_contractions(tensors_of(s.directions)) for s in samples], axis=0)
    heights = mean("sixth", R @ (np.sqrt(2) * weights))
    # What the sixth chaos has along the norm of x beside the features takes a share of the heights.
    sixth, traced = np.linalg.solve(R, heights), (0.0, 0.0)
    for _ in range(3):
        traced = _traced_sixth(samples, T, sixth)
        beside = [
            np.sum(s.directions * traced_operator(s, sixth, traced)(s.directions), axis=0)
            for s in samples
        ]
        sixth = np.linalg.solve(R, heights - np.mean(beside, axis=0))
    V = np.stack([sample.couplings for sample in samples])  # (first layers, 3, D, p)
    gram = np.mean(np.einsum("kaip,kbip->kpab", V, V), axis=0)
    if corrected:
        kept = np.zeros((3, weights.size))
        kept[0] = mean("crossed_sixth", gram[:, 0, 0]) / np.maximum(gram[:, 0, 0], 1e-12)
        return KeptChaoses(sixth, kept, (0, 0, 0), (0, 0), traced, heights)
    crossed = np.stack(
        [
            _controlled(
                T, index, np.concatenate([s.crossed[m] for s in samples]), gram[:, m].sum(1)
            )
            for m in range(3)
        ]
    )
    ridge = 1e-9 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    kept = np.linalg.solve(gram + ridge, crossed.T[:, :, None])[:, :, 0].T
    lower = np.concatenate([sample.fourth + sample.second for sample in samples])
    heights = heights + T @ lower / T.size
    fourth, second = _attenuations(samples, T, sixth)
    return KeptChaoses(sixth, kept, fourth, second, traced, heights)


def _controlled(
    T: np.ndarray, index: np.ndarray, values: np.ndarray, exact: np.ndarray
) -> np.ndarray:
    """E[T values] where that of the index is exact."""
    control, response = index[:, None] * values, T[:, None] * values
    centred = control - control.mean(axis=0)
    slope = np.sum(centred * response, axis=0) / np.maximum(np.sum(centred**2, axis=0), 1e-300)
    return np.asarray(response.mean(axis=0) - slope * (control.mean(axis=0) - exact))


def _attenuations(
    samples: Sequence[CubicSample], T: np.ndarray, sixth: np.ndarray
) -> tuple[tuple[float, float, float], tuple[float, float]]:
    """What the label keeps of each harmonic part of the fourth and of the second chaos."""
    columns: list[list[np.ndarray]] = [[], [], [], [], []]
    d = round(np.mean([tensors_of(sample.directions).shape[1] for sample in samples]))
    for sample in samples:
        s = sample.squared_input_norm
        scale, _ = fourth_parts(tensors_of(sample.directions), sixth)
        # Harmonic parts of I_4: sym(I I), sym(I H), and the rest; of I_2: I, and the rest.
        isotropic = s**2 - 2 * (d + 2) * s + d * (d + 2)
        paired = 6 * 18 / (d + 4) * (sample.traced @ sixth) * (s - d - 4)
        whole = sample.fourth @ sixth / 2
        trace = 3 * sixth.sum() / d
        columns[0].append(isotropic)
        columns[1].append(paired / 24)
        columns[2].append(whole - (scale * isotropic + paired) / 24)
        columns[3].append(s - d)
        columns[4].append((sample.second @ sixth - trace * (s - d)) / 2)
    parts = [np.concatenate(column) for column in columns]
    moments = [float(T @ part / T.size) for part in parts]
    # E[part^2] is known of the isotropic ones: 24 |sym(I I)|^2 and 2 |I|^2.
    powers = [float(part @ part / T.size) for part in parts]
    return (
        (24 * moments[0] / (8 * d * (d + 2)), moments[1] / powers[1], moments[2] / powers[2]),
        (moments[3] / d, moments[4] / powers[4]),
    )


def _traced_sixth(
    samples: Sequence[CubicSample], T: np.ndarray, sixth: np.ndarray
) -> tuple[float, float]:
    """Parts of tau_6 along sym(I I I) and sym(I I Z), Z of the index, beyond those of the features."""
    d = tensors_of(samples[0].directions).shape[1]
    s = np.concatenate([sample.squared_input_norm for sample in samples])
    form = np.concatenate([sample.twice_traced @ sixth for sample in samples])
    beyond = T - np.concatenate([sample.sixth @ sixth for sample in samples]) / 2
    # I_6 of both: s^3 - ... of mean square 48 d (d + 2) (d + 4), and the form times a square in s.
    isotropic = s**3 - 3 * (d + 4) * s**2 + 3 * (d + 2) * (d + 4) * s - d * (d + 2) * (d + 4)
    paired = form * (s**2 - 2 * (d + 6) * s + (d + 4) * (d + 6))
    return (
        15 * float(beyond @ isotropic / T.size) / (d * (d + 2) * (d + 4)),
        720 * float(beyond @ paired / max(paired @ paired, 1e-300)),
    )


def traced_operator(
    sample: CubicSample, sixth: np.ndarray, traced: tuple[float, float]
) -> CubicOperator:
    """The operator of the sixth chaos along the norm of x, beyond that of the features."""
    tensors = tensors_of(sample.directions)
    Z = np.tensordot(sixth, traceless(double_traces(tensors)), axes=1)
    return CubicOperator(tensors[:0], sixth[:0], None, None, traced[0], traced[1] * Z)


def fourth_parts(tensors: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Coefficient of sym(I I) in tau_4 and the traceless H of its part sym(I H)."""
    d = tensors.shape[1]
    traced = 18 * np.tensordot(weights, single_traces(tensors), axes=1)
    return 3 * float(np.trace(traced)) / (d * (d + 2)), 6 / (d + 4) * traceless(traced)
