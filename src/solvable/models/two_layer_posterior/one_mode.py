"""Theories of the target's mode alone, which leave out the other modes of a specialised neuron."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from solvable.models.two_layer_posterior.large_deviation import TiltedNeuron, readout_scale
from solvable.models.two_layer_posterior.overlap import neuron_overlap
from solvable.models.two_layer_posterior.saddle import FieldProblem


@dataclass(frozen=True, kw_only=True)
class TargetMode:
    """Posterior of a two-layer network in which only the target's mode is learned."""

    dimension: int
    width: int
    samples: float
    kappa: float
    degree: int = 3
    activation: str = "erf"
    readout: str = "standard"
    reduced: bool = False  # True if irrelevant weights are fixed

    @property
    def scale(self) -> float:
        """Variance of a readout weight times the width, 1 / chi."""
        return 1 / readout_scale(self.readout, self.width)

    @cached_property
    def neuron(self) -> TiltedNeuron:
        """One neuron under the prior, tilted by its overlap with the target."""
        overlap = neuron_overlap(self.activation, self.degree)
        return TiltedNeuron(overlap, self.dimension, self.reduced)

    def tilted(self, t: float) -> float:
        """Mean of c² in a field t on the target's mode."""
        return self.neuron.moments(t * t * self.scale / (2 * self.width))[1]

    def alignment(self) -> float:
        """Compute the alignment in the equivalent-kernel theory of the target's mode."""
        # alpha = <V / (V + kappa / P)> under p(V) (1 + V P / kappa)^(-1/2) exp(-1 / 2 (V + kappa / P)),
        # V = sigma_a² sum_i c(w_i)² / N chi   (two-layer-posterior 9; arXiv:2512.04165, Appendix G). At
        # large width its saddle point is the large deviation. The theory overestimates the alignment
        # beyond the onset by 0.1 to 0.3.
        # The field is at most P/kappa: a grid made for P/kappa covers its distribution.
        self.tilted(self.samples / self.kappa)
        grid = self.neuron.grid
        overlap = self.neuron.overlap.value(grid.u[:, None], grid.r).ravel()
        problem = FieldProblem(
            features=sqrt(self.samples) * overlap[:, None],
            target=np.array([sqrt(self.samples)]),
            log_weight=grid.log_weight.ravel(),
            variance=np.full(overlap.size, self.scale / self.width),
            ridge=self.kappa,
        )
        return float(self.width * (problem.law(self.width)[1] @ overlap))

    def adapted_alignment(self) -> float:
        """Solve the equations of kernel adaptation, the saddle point of `alignment`."""
        # t = P (1 - alpha) / kappa, alpha = sigma_a² t <c²>_t / chi   (arXiv:2512.04165, Appendix G). The
        # second equation is the saddle of the large deviation; the first one fixes its field by the
        # samples. alpha grows with t, so that the difference has one zero.
        most = self.samples / self.kappa
        low, high = 0.0, most
        for _ in range(60):
            t = (low + high) / 2
            if t < most * (1 - self.scale * t * self.tilted(t)):
                low = t
            else:
                high = t
        return 1 - (low + high) / (2 * most)
