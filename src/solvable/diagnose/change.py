"""Change of a matrix since its initial weights, or since a multiple of them: size and rank."""

from __future__ import annotations

import numpy as np

from solvable.diagnose.diagnosis import Comparison, MatrixDiagnosis

SHRUNK = (
    0.1  # share of the change along the initial weights above which a multiple of them is compared
)
MOST_SIDE = 2_000  # shorter side up to which the rank of a change without a spectrum is computed


def change_between(weights: np.ndarray, initial: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the change beyond a multiple of the initial weights, the multiple, and the whole change.

    The last number is the norm of the whole change, relative to that of the initial weights (NaN if
    they are zero).
    """
    start = np.asarray(initial, dtype=np.float64)
    change = np.asarray(weights, dtype=np.float64) - start
    # In units of the largest entry, because squares of extreme entries overflow.
    unit = float(np.abs(start).max(initial=0.0))
    if not (np.isfinite(change).all() and unit > 0):
        return change, 1.0, np.nan
    norm = float(np.linalg.norm(start / unit))
    size = float(np.linalg.norm(change / unit))
    along = float(np.vdot(start / unit, change / unit))
    if size == 0 or along**2 < SHRUNK * (norm * size) ** 2:
        return change, 1.0, size / norm
    # (spectra 10) Weight decay multiplies the start by c; least squares give c = <W, W0> / <W0, W0>.
    # A change that is nothing but this factor is left as it is.
    multiple = 1 + along / norm**2
    rest = change - (multiple - 1) * start
    if float(np.linalg.norm(rest / unit)) < 1e-6 * size:
        return change, multiple, size / norm
    return rest, multiple, size / norm


def comparison_of(
    row: MatrixDiagnosis,
    start: MatrixDiagnosis,
    difference: MatrixDiagnosis,
    change: np.ndarray,
    multiple: float,
    relative: float,
) -> Comparison:
    """Compare the trained matrix with the weights before training."""
    rank = rank_of(change, difference.values)
    known = np.isfinite(relative)
    parts = []
    if rank is not None:
        many = "1 direction holds" if rank == 1 else f"{rank} directions hold"
        above = difference.directions or 0
        parts.append(
            f"{many} 95 % of its squared norm, at least {above} {'is' if above == 1 else 'are'} above "
            "random signs"
        )
    if known:
        parts.append(f"the norm of the whole change is {relative:.2g} times the initial norm")
    since = (
        "the change"
        if abs(multiple - 1) < 5e-4
        else f"the change since {multiple:.3g} times the start"
    )
    text = f"{since}: {'; '.join(parts)}" if parts else ""
    if row.fitted or difference.fitted:
        text += (
            f"; {start.phase} before training, {row.phase} after; the change is {difference.phase}"
        )
    return Comparison(
        phase=start.phase,
        directions=start.directions,
        relative_change=relative if known else None,
        multiple=multiple,
        difference=difference,
        rank=rank,
        text=f"{text.removeprefix('; ')}." if text else "",
    )


def rank_of(change: np.ndarray, values: np.ndarray | None) -> int | None:
    """Return the fewest directions that hold 95 % of the squared norm of the change."""
    if values is None:
        if not np.isfinite(change).all() or min(change.shape) > MOST_SIDE or not change.any():
            return None
        scaled = change.reshape(len(change), -1) / np.abs(change).max()
        values = np.linalg.svd(scaled, compute_uv=False)
    # (spectra 11)
    squares = np.sort(np.square(values / np.abs(values).max()))[::-1]
    return int(np.searchsorted(np.cumsum(squares), 0.95 * squares.sum())) + 1
