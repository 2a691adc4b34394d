r"""Integral over the fields of a data set: saddle point, and fluctuations at finite width."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from solvable.errors import NotConverged


@dataclass(frozen=True)
class FieldProblem:
    """Integral over the fields of a data set, restricted to a few functions of the inputs."""

    # Z = int dt exp(-t.y + kappa |t|² / 2) [sum_w p(w) exp(s²(w) (t.psi(w))² / 2)]^N along
    # imaginary t   (two-layer-posterior 10). It is exact once the readouts are integrated out.

    features: np.ndarray  # functions psi(w) of each neuron, shape (neurons, k)
    target: np.ndarray  # target y in these functions, shape (k,)
    log_weight: np.ndarray  # log prior log p(w) of each neuron
    variance: np.ndarray  # readout variance s²(w) of each neuron
    ridge: float  # kappa

    def action(self, t: np.ndarray, width: int) -> tuple[float, np.ndarray]:
        """Compute minus the log of the integrand, convex in real t, and a neuron's distribution."""
        drive = self.log_weight + self.variance * (self.features @ t) ** 2 / 2
        top = float(drive.max())
        law = np.exp(drive - top)
        whole = float(law.sum())
        value = -t @ self.target + self.ridge / 2 * t @ t + width * (top + log(whole))
        return float(value), law / whole

    def slopes(self, t: np.ndarray, law: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Compute gradient and Hessian of the action; t and law may be complex."""
        field = self.features @ t
        pull = law * self.variance * field
        mean = self.features.T @ pull
        gradient = -self.target + self.ridge * t + width * mean
        weight = law * self.variance * (1 + self.variance * field**2)
        second = (self.features.T * weight) @ self.features - np.outer(mean, mean)
        return gradient, self.ridge * np.eye(t.size) + width * second

    def saddle(self, width: int, start: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Minimise the action over real t by Newton's method; return t and a neuron's distribution."""
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
                # differences below rounding do not count as an increase
                if (
                    moved_value <= value + 1e-4 * length * descent + 1e-12 * abs(value)
                    or length < 1e-8
                ):
                    break
                length /= 2
            t, value, law = t + length * step, moved_value, moved_law
        raise NotConverged(
            "the saddle point of the posterior did not converge in 200 Newton steps; take fewer samples, "
            "or a larger kappa.",
            {"gradient": float(np.abs(gradient).max()), "size": size},
        )

    def law(self, width: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Compute the law of one of ``width`` neurons, its mean readout times the law, and an error."""
        # The error is the violation of the exact identity kappa <t> = y - f, over |y|. The other N - 1
        # neurons are integrated to all orders along the direction in which the number of specialised
        # neurons fluctuates, and to one loop across it; the neuron itself is integrated to all orders.
        others = width - 1
        # The path crosses the real axis at the saddle point of all N neurons. At the saddle point of the
        # others a strong neuron would have a large weight that cancels along the path.
        t, law = self.saddle(width)
        _, hessian = self.slopes(t, law, width)
        field = self.features @ t
        typical = self.features.T @ (law * (self.variance * field) ** 2 * field)
        if not np.abs(typical).max() > 0 or others == 0:
            return law, law * self.variance * field, 0.0
        # conjugate to the field of a specialised neuron, so that it decouples from directions across
        along = np.linalg.solve(hessian, typical)
        along /= np.sqrt(along @ hessian @ along)
        across = np.linalg.svd(typical[None])[2][1:].T
        value = self.action(t, others)[0]
        # Trapezoidal rule in units of the Gaussian width; the integrand at -s is the conjugate at s.
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
        """Compute at a point of the path its log weight, the neuron's weight and readout, and t."""
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
        # int ds e^(i g.s - s.H.s/2) = e^(-g.H^-1.g/2) det(H)^(-1/2), and the mean of s is i H^-1 g
        weight = action - slope @ inner @ slope / 2 - size / 2 - np.log(sign) / 2
        moved = field - self.features @ (across @ (inner @ slope))
        seen = self.features @ across
        spread = 1 + self.variance * ((seen @ inner) * seen).sum(1)
        own = np.exp(
            self.log_weight - self.log_weight.max() + self.variance / spread * moved**2 / 2
        )
        own = own / np.sqrt(spread)
        drawn = own * self.variance / spread * moved
        # the neuron's own readout a shifts the fields across by -H^-1 psi a
        center = point - across @ (inner @ slope)
        fields = own.sum() * center - across @ (inner @ (drawn @ seen))
        return weight, own, drawn, fields


def reduced(features: np.ndarray, target: np.ndarray, weights: np.ndarray, rank: int) -> np.ndarray:
    """Return an orthonormal basis of the leading weighted features and the target."""
    gram = (features.T * weights) @ features
    basis = np.linalg.eigh(gram)[1][:, -rank:]
    left = target - basis @ (basis.T @ target)
    size = float(np.linalg.norm(left))
    if size > 1e-9 * float(np.linalg.norm(target)):
        basis = np.concatenate([basis, (left / size)[:, None]], axis=1)
    return np.asarray(basis)
