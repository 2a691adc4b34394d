"""Compare predicted and measured sample sizes of real networks on digits (docs/scale.md).

Run:  python benchmarks/scale_real.py directions figures.json
      python benchmarks/scale_real.py widths figures.json
      python benchmarks/scale_real.py sheets figures.json
      python benchmarks/scale_real.py labels figures.json
      python benchmarks/scale_real.py show figures.json
      python benchmarks/scale_real.py draw figures.json docs/figures

Networks are sampled from their posterior by Langevin dynamics with inertia, in two chains. The script
needs torch, and minutes of CPU time for each of the first four parts.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

import numpy as np

KAPPA = 0.1  # ridge and temperature
NEURONS = 64
LENGTH = 30.0  # duration of a run, in relaxation times of a weight under the prior
SIZES = (25, 50, 100, 200, 400, 800, 1200)
SHEET_SIZES = (100, 200, 400, 800, 1600, 3200)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return centred digits with mean squared length 64, and their labels."""
    from sklearn.datasets import load_digits

    X, labels = load_digits(return_X_y=True)
    X = X - X.mean(axis=0)
    return X * math.sqrt(X.shape[1] / np.mean(np.sum(X**2, axis=1))), labels


def patches(X: np.ndarray, side: int) -> np.ndarray:
    """Return disjoint squares of pictures of 8 by 8, of shape (n, patches, side²)."""
    pictures = X.reshape(-1, 8 // side, side, 8 // side, side)
    return pictures.transpose(0, 1, 3, 2, 4).reshape(len(X), -1, side * side)


def cubic(z: np.ndarray) -> np.ndarray:
    """Return coefficients of the cubic polynomial orthogonal to lower degrees under the law of z."""
    powers = np.vander(z, 4, increasing=True)
    _, R = np.linalg.qr(powers)
    # Columns of R^-1 are the orthonormal polynomials in powers of z.
    found = np.linalg.inv(R)[:, 3] * math.sqrt(len(z))
    return found[::-1] * np.sign(found[3])


def langevin(Z, y, Z_test, seed, *, neurons=NEURONS, kappa=KAPPA, length=LENGTH, step=0.7):
    """Return the posterior mean of f(x) = sum_ij a_ij erf(w_i . x_j) at test inputs, for two chains.

    Z has shape (P, W, S): W patches of S numbers; W = 1 for a network without weight sharing. Prior:
    w ~ N(0, I/S), a ~ N(0, 1/(NW)).
    """
    import torch

    torch.set_num_threads(1)
    stream = torch.Generator().manual_seed(seed)
    P, W, S = Z.shape
    chains, scale = 2, 1 / math.sqrt(neurons * W)
    inputs = torch.tensor(Z / math.sqrt(S), dtype=torch.float32).reshape(P * W, S)
    held = torch.tensor(Z_test / math.sqrt(S), dtype=torch.float32).reshape(-1, S)
    target = torch.tensor(y, dtype=torch.float32)
    # Weights in units of their prior standard deviation.
    w = torch.randn(chains, neurons, S, generator=stream)
    a = torch.randn(chains, neurons, W, generator=stream)
    speed_w = torch.randn(w.shape, generator=stream)
    speed_a = torch.randn(a.shape, generator=stream)

    def outputs(x, rows):
        pre = x @ w.transpose(1, 2)
        hidden = torch.erf(pre).reshape(chains, rows, W * neurons)
        readout = a.transpose(1, 2).reshape(chains, W * neurons, 1)
        return pre, hidden, torch.bmm(hidden, readout)[..., 0] * scale

    def forces():
        pre, hidden, f = outputs(inputs, P)
        r = (f - target) * scale / kappa
        down_a = torch.bmm(r[:, None], hidden).reshape(chains, W, neurons).transpose(1, 2)
        slope = (torch.exp(-pre * pre) * (2 / math.sqrt(math.pi))).reshape(chains, P, W, neurons)
        slope = slope * a.transpose(1, 2)[:, None] * r[:, :, None, None]
        down_w = torch.bmm(
            slope.reshape(chains, P * W, neurons).transpose(1, 2), inputs.expand(chains, -1, -1)
        )
        return -(down_w + w), -(down_a + a)

    # The largest curvature is about P lambda_max(K) / kappa, with lambda_max below 1/4.
    h = step / math.sqrt(1 + 0.25 * P / kappa)
    kept = math.exp(-h)
    noise = math.sqrt(1 - kept**2)
    steps = int(length / h)
    force_w, force_a = forces()
    total, count = torch.zeros(chains, len(Z_test)), 0
    for now in range(steps):
        # BAOAB integrator of Leimkuhler and Matthews: exact for the positions in a harmonic potential.
        speed_w += h / 2 * force_w
        speed_a += h / 2 * force_a
        w += h / 2 * speed_w
        a += h / 2 * speed_a
        speed_w = kept * speed_w + noise * torch.randn(w.shape, generator=stream)
        speed_a = kept * speed_a + noise * torch.randn(a.shape, generator=stream)
        w += h / 2 * speed_w
        a += h / 2 * speed_a
        force_w, force_a = forces()
        speed_w += h / 2 * force_w
        speed_a += h / 2 * force_a
        if now >= steps // 2 and now % 20 == 0:
            total += outputs(held, len(Z_test))[2]
            count += 1
    return (total / count).numpy()


def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the kernel of the infinitely wide network of `langevin`: the lazy limit."""
    from solvable.operators.activations import dual_kernel

    A, B = A / math.sqrt(A.shape[2]), B / math.sqrt(B.shape[2])
    parts = (
        dual_kernel("erf", A[:, j] @ B[:, j].T, *(np.sum(x[:, j] ** 2, axis=1) for x in (A, B)))
        for j in range(A.shape[1])
    )
    return sum(parts) / A.shape[1]


def alignment(f: np.ndarray, y: np.ndarray) -> float:
    """Return the alignment <f, y> / <y, y> on held-out rows."""
    return float(f @ y / (y @ y))


def curves(Z, y, Z_test, y_test, sizes, seed, neurons=NEURONS) -> dict[str, list]:
    """Return alignments of the network and of its lazy kernel, and the network's R², at each size."""
    K, cross = kernel(Z[: sizes[-1]], Z[: sizes[-1]]), kernel(Z_test, Z[: sizes[-1]])
    found: dict[str, list] = {"learned": [], "lazy": [], "r2": [], "chains": []}
    for P in sizes:
        dual = np.linalg.solve(K[:P, :P] + KAPPA * np.eye(P), y[:P])
        found["lazy"].append(alignment(cross[:, :P] @ dual, y_test))
        f = langevin(Z[:P], y[:P], Z_test, seed, neurons=neurons)
        found["learned"].append(alignment(f.mean(axis=0), y_test))
        found["chains"].append([alignment(part, y_test) for part in f])
        found["r2"].append(float(1 - np.mean((f.mean(axis=0) - y_test) ** 2) / np.mean(y_test**2)))
    return found


def crossing(sizes, values, level=0.5) -> float:
    """Return the first size at which a curve reaches a level, interpolated in log size; NaN if none."""
    for k, value in enumerate(values):
        if value >= level:
            if k == 0:
                return float(sizes[0])
            part = (level - values[k - 1]) / (value - values[k - 1])
            return float(sizes[k - 1] * (sizes[k] / sizes[k - 1]) ** part)
    return math.nan


def predicted(d: float, **more: float) -> float:
    """Return the predicted onset of learning He3 with 64 neurons, by ``solvable scale --numbers``."""
    from solvable.scale import network_of_flags
    from solvable.scale.prefactors.samples_at_sizes import numbers_of

    network = network_of_flags("erf:1:1/2" if "S" in more else "erf:1", "he3")
    sizes = {"N": NEURONS, "kappa": KAPPA} | more
    return numbers_of(network, sizes if "S" in more else sizes | {"d": d}).winner.samples


def with_effective_ridge(P: float, K: np.ndarray) -> float:
    """Return the onset predicted with the effective ridge of unlearned modes: P* = kappa_eff s."""
    from scipy.optimize import brentq

    values = np.clip(np.linalg.eigvalsh(K[:2000, :2000] / min(2000, len(K))), 0, None)

    def ridge(rows: float) -> float:
        # kappa_eff = kappa + kappa_eff sum_k lambda_k / (P lambda_k + kappa_eff)
        return brentq(
            lambda e: KAPPA / e + np.sum(values / (rows * values + e)) - 1,
            KAPPA, 2 * KAPPA + values.sum(),
        )  # fmt: skip

    return float(brentq(lambda rows: rows - P * ridge(rows) / KAPPA, 1.0, 100.0 * P))


def directions(seeds=(0, 1, 2), places=(0, 5, 12, 25), neurons=NEURONS) -> list[dict]:
    """Measure one network on four targets: cubic features of principal components."""
    X, _ = digits()
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    rows = []
    for place in places:
        strength = values[-1 - place] / values.sum()
        z = X @ vectors[:, -1 - place]
        y = np.polyval(cubic(z), z)
        found = []
        for seed in seeds:
            order = np.random.default_rng(seed).permutation(len(X))
            rest = order[1200:]
            found.append(
                curves(X[order, None], y[order], X[rest, None], y[rest], SIZES, seed, neurons)
            )
        P = predicted(1 / strength, N=neurons)
        rows.append({
            "what": f"component {place + 1}, {neurons} neurons", "strength": strength, "sizes": SIZES,
            "predicted": P, "curves": found,
            "effective": with_effective_ridge(P, kernel(X[:, None], X[:, None])),
        })  # fmt: skip
        show(rows[-1])
    return rows


def widths(seeds=(0, 1)) -> list[dict]:
    """Measure three widths on one target: a cubic feature of the sixth component."""
    return [row for N in (16, 64, 256) for row in directions(seeds, (5,), N)]


def sheets(seeds=(0, 1)) -> list[dict]:
    """Measure two networks on one target: a cubic feature summed over the four digits of a sheet."""
    X, _ = digits()
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    strength, w = values[-6] / values.sum(), vectors[:, -6]
    polynomial = cubic(X @ w)
    rows = []
    for name, shared in (("CNN", True), ("MLP", False)):
        found = []
        sizes = SHEET_SIZES[: -1 if shared else None]  # the largest size is slow with four patches
        for seed in seeds:
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(X))
            train = X[rng.choice(order[:1200], (SHEET_SIZES[-1], 4))]
            test = X[rng.choice(order[1200:], (1000, 4))]
            y, y_test = (np.polyval(polynomial, Z @ w).sum(axis=1) / 2 for Z in (train, test))
            Z, Z_test = (
                part if shared else part.reshape(len(part), 1, -1) for part in (train, test)
            )
            found.append(curves(Z, y, Z_test, y_test, sizes, seed))
        # Without sharing, each of the four digits needs M neurons at a cost of 4/lambda_0 each: the
        # cost of one direction of 16/lambda_0.
        P = predicted(0, S=1 / strength, W=4) if shared else predicted(16 / strength)
        rows.append({"what": name, "strength": strength, "sizes": sizes, "predicted": P,
                     "curves": found, "effective": with_effective_ridge(P, kernel(Z, Z))})  # fmt: skip
        show(rows[-1])
    return rows


def labels(seeds=(0, 1, 2)) -> list[dict]:
    """Measure both networks on real labels: odd against even digits."""
    X, classes = digits()
    y = np.where(classes % 2, 1.0, -1.0)
    y -= y.mean()
    rows = []
    for name, Z in (("MLP", X[:, None]), ("CNN", patches(X, 4))):
        found = []
        for seed in seeds:
            order = np.random.default_rng(seed).permutation(len(X))
            rest = order[1200:]
            found.append(curves(Z[order], y[order], Z[rest], y[rest], SIZES, seed))
        K = kernel(Z, Z)
        # P* = 2 kappa E / k with E = 1 / (2 <y, K, y>) of a unit target and k = 1 + K(x, x).
        energy = float(np.mean(y**2)) * len(X) ** 2 / (2 * float(y @ K @ y))
        P = 2 * KAPPA * energy / (1 + float(np.mean(np.diag(K))))
        rows.append({"what": name, "strength": None, "sizes": SIZES, "predicted": P,
                     "curves": found, "effective": with_effective_ridge(P, K)})  # fmt: skip
        show(rows[-1])
    return rows


def show(row: dict) -> None:
    """Print the figures of a row."""
    ends = {}
    for kind in ("learned", "lazy"):
        crossed = [crossing(row["sizes"], curve[kind]) for curve in row["curves"]]
        error = np.std(crossed, ddof=1) / math.sqrt(len(crossed))
        ends[kind] = f"{np.mean(crossed):.0f} +- {error:.0f}"
    # Onset of features: the alignment of the network exceeds that of its lazy kernel by 0.1.
    left = [
        crossing(row["sizes"], np.subtract(curve["learned"], curve["lazy"]), 0.1)
        for curve in row["curves"]
    ]
    ends["left"] = f"{np.mean(left):.0f} +- {np.std(left, ddof=1) / math.sqrt(len(left)):.0f}"
    gaps = [abs(a - b) for curve in row["curves"] for a, b in curve["chains"]]
    learned = np.mean([curve["learned"] for curve in row["curves"]], axis=0)
    lazy = np.mean([curve["lazy"] for curve in row["curves"]], axis=0)
    r2 = np.mean([curve["r2"] for curve in row["curves"]], axis=0)
    print(
        f"{row['what']}, lambda_0 {row['strength']}: predicted onset {row['predicted']:.1f}, "
        f"{row['effective']:.1f} with the effective ridge; alignment 0.5 at "
        f"{ends['learned']}, lazy kernel at {ends['lazy']}; alignments differ by 0.1 at "
        f"{ends['left']}; chains differ by {max(gaps):.3f}"
    )
    for name, values in (("sizes", row["sizes"]), ("learned", learned), ("lazy", lazy), ("R2", r2)):
        print(f"  {name:8}", " ".join(f"{value:7.3f}" for value in values), flush=True)


def summary(row: dict) -> dict:
    """Return what a figure shows of a row: means over splits, and standard errors."""
    learned, lazy = (np.array([c[kind] for c in row["curves"]]) for kind in ("learned", "lazy"))
    return {
        "what": row["what"].split(",")[0], "strength": row["strength"], "sizes": list(row["sizes"]),
        "learned": learned.mean(axis=0).tolist(), "lazy": lazy.mean(axis=0).tolist(),
        "error": (learned.std(axis=0, ddof=1) / math.sqrt(len(learned))).tolist(),
        "effective": row["effective"],
    }  # fmt: skip


def figure(part: str, rows: list[dict]):
    """Draw a figure of docs/scale.md from its summaries."""
    from solvable.plots import Figure, Marker, Series

    titles = {"directions": "One network, four directions of digits",
              "sheets": "Four digits on a sheet: shared filters or none"}  # fmt: skip
    series, markers = [], []
    for colour, row in enumerate(rows):
        name, sizes = row["what"], row["sizes"]
        if part == "directions":
            name += f", strength {row['strength']:.3f}"
        series += [
            Series(name, sizes, row["learned"], "points", row["error"], colour),
            Series(f"{name}: lazy kernel", sizes, row["lazy"], "dashed", None, colour),
        ]
        markers.append(Marker(row["effective"], "", colour))
    return Figure(
        f"scale-real-{part}", titles[part], "training rows P", "alignment with the target", series,
        "Points: networks, mean and standard error over splits. Dashed: their lazy kernels. Vertical "
        "lines: predicted onset of features, with the effective ridge.",
        markers, x_scale="log",
    )  # fmt: skip


def draw(figures: dict, directory: Path) -> None:
    """Draw both figures, and write the summaries from which docs/figures.py draws them."""
    from solvable.plots import write_figures

    found = {part: [summary(row) for row in figures[part]] for part in ("directions", "sheets")}
    write_figures([figure(part, rows) for part, rows in found.items()], directory)
    (directory / "scale-real.json").write_text(json.dumps(found))


def main(part: str, path: str, directory: str = "") -> None:
    """Run one part and store its figures in a file, or show or draw stored figures."""
    file = Path(path)
    figures = json.loads(file.read_text()) if file.exists() else {}
    if part == "show":
        for row in (row for rows in figures.values() for row in rows):
            show(row)
        return
    if part == "draw":
        draw(figures, Path(directory))
        return
    start = time.process_time()
    figures[part] = {
        "directions": directions,
        "widths": widths,
        "sheets": sheets,
        "labels": labels,
    }[part]()
    file.write_text(json.dumps(figures))
    print(f"{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main(*sys.argv[1:])
