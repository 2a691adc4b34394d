r"""Integral over the fields of a data set: saddle point, and the fluctuations of a finite width."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from solvable.errors import NotConverged


@dataclass(frozen=True)
class FieldProblem:
    """Neurons that see a data set through a few functions of the inputs."""

    # Z = int dt exp(-t.y + kappa |t|² / 2) [sum_w p(w) exp(s^2(w) (t.psi(w))² / 2)]^N along
    # imaginary t: exact after the readouts are integrated out, with N free neurons.

    features: np.ndarray  # psi(w), shape (neurons, k)
    target: np.ndarray  # y, shape (k,)
    log_weight: np.ndarray  # log p(w)
    variance: np.ndarray  # s^2(w)
    ridge: float  # kappa

    def action(self, t: np.ndarray, width: int) -> tuple[float, np.ndarray]:
        """Minus the logarithm of the integrand, convex in real t, and the law of one neuron."""
        drive = self.log_weight + self.variance * (self.features @ t) ** 2 / 2
        top = float(drive.max())
        law = np.exp(drive - top)
        whole = float(law.sum())
        value = -t @ self.target + self.ridge / 2 * t @ t + width * (top + log(whole))
        return float(value), law / whole

    def slopes(self, t: np.ndarray, law: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of the action; t and law may be complex."""
        field = self.features @ t
        pull = law * self.variance * field
        mean = self.features.T @ pull
        gradient = -self.target + self.ridge * t + width * mean
        weight = law * self.variance * (1 + self.variance * field**2)
        second = (self.features.T * weight) @ self.features - np.outer(mean, mean)
        return gradient, self.ridge * np.eye(t.size) + width * second

    def saddle(self, width: int, start: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The real t at which the action is least, and the law of a neuron there, by Newton's method."""
        t = np.zeros(self.target.size) if start is None else start
        value, law = self.action(t, width)
        size = float(np.abs(self.target).max())
        for _ in range(200):
            gradient, hessian = self.slopes(t, law, width)
            if float(np.abs(gradient).max()) < 1e-9 * size:
                return t, law
            step = -np.linalg.solve(hessian, gradient)
            length, descent = 1.0, float(gradient @ step)
            while True:
                moved_value, moved_law = self.action(t + length * step, width)
                # differences below rounding are no ascent
                if (
                    moved_value <= value + 1e-4 * length * descent + 1e-12 * abs(value)
                    or length < 1e-8
                ):
                    break
                length /= 2
            t, value, law = t + length * step, moved_value, moved_law
        raise NotConverged(
            "the field of the posterior did not settle in 200 Newton steps; take fewer samples, or a "
            "larger kappa.",
            {"gradient": float(np.abs(gradient).max()), "size": size},
        )

    def law(self, width: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Law of a neuron among ``width``, its mean readout times that law, and an error."""
        # The error is that of kappa <t> = y - f, which holds exactly, over |y|.
        # All other neurons' integral, along the direction in which the number of specialised neurons
        # fluctuates to all orders, and to one loop across it; the neuron itself to all orders.
        others = width - 1
        # The path crosses the real axis where all N of them have their saddle: at that of the others a
        # strong neuron's weight would be large, and cancel along the path.
        t, law = self.saddle(width)
        _, hessian = self.slopes(t, law, width)
        field = self.features @ t
        typical = self.features.T @ (law * (self.variance * field) ** 2 * field)
        if not np.abs(typical).max() > 0 or others == 0:
            return law, law * self.variance * field, 0.0
        # Conjugate to what a specialised neuron does, so that no term couples it to those across.
        along = np.linalg.solve(hessian, typical)
        along /= np.sqrt(along @ hessian @ along)
        across = np.linalg.svd(typical[None])[2][1:].T
        value = self.action(t, others)[0]
        # Trapezoidal rule in units of the Gaussian width; the integrand is even in the conjugate sense.
        total, step, largest = np.zeros(law.size), 0.5, 0.0
        readout, fields = np.zeros(law.size), np.zeros(t.size)
        for j in range(80):
            point = t + 1j * step * j * along
            weight, tilted, drawn, seen = self._across(point, across, others, value)
            if j == 0:
                reference = weight
            share = np.exp(weight - reference.real) * (0.5 if j == 0 else 1.0)
            total = total + (share * tilted).real
            readout = readout + (share * drawn).real
            fields = fields + (share * seen).real
            largest = max(largest, abs(share))
            if abs(share) < 1e-4 * largest:
                break
        normal = float(total.sum())
        law, readout, mean = total / normal, readout / normal, fields / normal
        left = self.target - self.ridge * mean - width * (readout @ self.features)
        return law, readout, float(np.linalg.norm(left) / np.linalg.norm(self.target))

    def _across(
        self, point: np.ndarray, across: np.ndarray, width: int, value: float
    ) -> tuple[complex, np.ndarray, np.ndarray, np.ndarray]:
        """Log weight of a point of the path, the neuron's weight and mean readout there, and t."""
        field = self.features @ point
        drive = self.log_weight + self.variance * field**2 / 2
        top = float(drive.real.max())
        law = np.exp(drive - top)
        whole = law.sum()
        action = -point @ self.target + self.ridge / 2 * point @ point
        action = action + width * (top + np.log(whole)) - value
        gradient, hessian = self.slopes(point, law / whole, width)
        inner = np.linalg.inv(across.T @ hessian @ across)
        slope = across.T @ gradient
        sign, size = np.linalg.slogdet(np.linalg.inv(inner))
        # int ds e^(i g.s - s.H.s/2) = e^(-g.H^-1.g/2) det(H)^(-1/2), with mean s = i H^-1 g
        weight = action - slope @ inner @ slope / 2 - size / 2 - np.log(sign) / 2
        moved = field - self.features @ (across @ (inner @ slope))
        seen = self.features @ across
        spread = 1 + self.variance * ((seen @ inner) * seen).sum(1)
        own = np.exp(
            self.log_weight - self.log_weight.max() + self.variance / spread * moved**2 / 2
        )
        own = own / np.sqrt(spread)
        drawn = own * self.variance / spread * moved
        # the neuron's own readout moves the fields across by -H^-1 psi a
        center = point - across @ (inner @ slope)
        fields = own.sum() * center - across @ (inner @ (drawn @ seen))
        return weight, own, drawn, fields


def reduced(features: np.ndarray, target: np.ndarray, weights: np.ndarray, rank: int) -> np.ndarray:
    """Orthonormal basis of the leading features of neurons of such weights, and of the target."""
    gram = (features.T * weights) @ features
    basis = np.linalg.eigh(gram)[1][:, -rank:]
    left = target - basis @ (basis.T @ target)
    size = float(np.linalg.norm(left))
    if size > 1e-9 * float(np.linalg.norm(target)):
        basis = np.concatenate([basis, (left / size)[:, None]], axis=1)
    return np.asarray(basis)
