r"""Choice of the cheapest method (route) to the leading eigenpairs that fits into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from solvable.arrays import check_integer
from solvable.errors import InvalidParameter, MemoryLimitExceeded, unknown_choice
from solvable.memory import available_bytes, gigabytes
from solvable.operators.base import Correction
from solvable.operators.feature_map import FeatureMap

RouteName: TypeAlias = Literal["lanczos", "dense", "gram"]
"""Names of the routes to the leading eigenpairs."""

CALL_FLOPS = 2e7
"""Smallest cost of one product, due to calls from Python; in flops of a matrix product."""


@dataclass(frozen=True)
class Route:
    """Route to the leading eigenpairs, with its estimated cost.

    Parameters
    ----------
    name : {"lanczos", "dense", "gram"}
        Matrix-free Lanczos, explicit matrix of shape (D, D), or dual matrix of shape (n, n).
    flops : float
        Estimated cost in float64 flops at the rate of a large GEMM.
    bytes : float
        Estimated memory in addition to the samples.
    alternatives : tuple of Route
        All other routes that exist for this problem, cheapest first.
    """

    name: RouteName
    flops: float
    bytes: float
    alternatives: tuple[Route, ...] = ()

    def __str__(self) -> str:
        """One line with name, work and memory."""
        return f"{self.name} ({self.flops:.2g} flops, {gigabytes(self.bytes)})"


def basis_capacity(n_features: int, n_vectors: int) -> int:
    """Number of vectors that Lanczos stores before a restart."""
    # Vectors and images fill at most 256 MB, but at least twice the pairs plus 20 are stored.
    return min(n_features, max(2 * n_vectors + 20, min(400, 256_000_000 // (16 * n_features))))


def expected_products(n_features: int, n_vectors: int) -> int:
    """Expected number of Lanczos products if some eigenpairs are at the bulk edge."""
    return min(n_features, 40 + 8 * n_vectors)  # measured number; outliers alone need a fifth of it


def _product_flops(n: int, features: FeatureMap) -> float:
    """Flops of one product, with factors measured relative to a matrix product of size 1500."""
    d, degree = features.dimension, getattr(features, "degree", 1)
    if degree == 2:
        return CALL_FLOPS + 4.0 * n * d**2 * (0.8 + 2000 / d**2)
    if degree == 3:
        return CALL_FLOPS + 2.0 * n * d**3 * (1.1 + 350 / d**2)
    return CALL_FLOPS + 10 * 4.0 * n * features.n_features


def _lanczos(n: int, features: FeatureMap, k: int, wick: bool, itemsize: int) -> Route:
    d, size = features.dimension, features.n_features
    degree = getattr(features, "degree", 1)
    products = expected_products(size, k)
    flops = products * (_product_flops(n, features) * itemsize / 8 + 50.0 * products * size)
    memory = 16.0 * size * (basis_capacity(size, k) + 2 * k) + 8.0 * 4096 * d
    if degree == 3:
        memory += 8.0 * d**2 * (3 * d + 2 * min(2048, max(64, 1_000_000 // d**2)))
    if wick and degree == 2:
        flops += products * 10.0 * d**3
    if wick and degree == 3:
        pairs = d * (d + 1) // 2
        flops += 1.5 * n * pairs**2 + products * 4.0 * pairs**2 * d
        memory += 16.0 * pairs**2
    return Route("lanczos", flops, memory)


def _dense(n: int, features: FeatureMap, wick: bool, itemsize: int) -> Route:
    d, size = features.dimension, features.n_features
    explicit = (1.5 * n * size**2 + 20.0 * n * size) * itemsize / 8
    flops = CALL_FLOPS + explicit + 8.0 * size**3
    rows = max(64, min(4096, max(8_000_000, size**2 // 4) // size))
    memory = 16.0 * size**2 + 24.0 * rows * size
    if wick and getattr(features, "degree", 1) == 3:
        pairs = d * (d + 1) // 2
        flops += 1.5 * n * pairs**2 + 4.0 * size * pairs**2 * d
        memory += 16.0 * pairs**2
    return Route("dense", flops, memory)


def _gram(n: int, features: FeatureMap) -> Route:
    flops = CALL_FLOPS + 10.0 * n**3 + 2.0 * n**2 * (features.dimension + 25)
    return Route("gram", flops, 40.0 * n**2 + 16.0 * n * features.dimension)


def possible_routes(
    n_samples: int,
    features: FeatureMap,
    n_vectors: int,
    *,
    correction: Correction = "none",
    itemsize: int = 8,
) -> tuple[Route, ...]:
    """Routes that exist for a problem, cheapest first."""
    wick = correction == "wick" and getattr(features, "degree", 1) > 1
    routes = [
        _lanczos(n_samples, features, n_vectors, wick, itemsize),
        _dense(n_samples, features, wick, itemsize),
    ]
    if n_samples < features.n_features and not wick:
        routes.append(_gram(n_samples, features))
    return tuple(sorted(routes, key=lambda route: route.flops))


def choose_route(
    n_samples: int,
    features: FeatureMap,
    n_vectors: int,
    available_memory: float | None = None,
    *,
    correction: Correction = "none",
    itemsize: int = 8,
    route: Literal["auto"] | RouteName = "auto",
) -> Route:
    r"""Choose the cheapest route to the leading eigenpairs that fits into memory.

    Costs in flops at the rate of a large float64 matrix product, with measured factors for slower
    operations: Lanczos :math:`m \cdot 4 n d^2` (q = 2; :math:`4nD` and :math:`2nd^3` for q = 1, 3) for
    :math:`m = \min(D, 40 + 8k)` products, dense :math:`1.5\,n D^2 + 8 D^3`, dual
    :math:`10\,n^3 + 2 n^2 d`.

    Parameters
    ----------
    n_samples : int
        Number :math:`n` of samples, at least 1.
    features : FeatureMap
        Feature map with :math:`d` and :math:`D`.
    n_vectors : int
        Number :math:`k` of eigenpairs at both ends together.
    available_memory : float, optional
        Memory limit in bytes; by default the free memory of the machine or its container.
    correction : {"none", "wick"}
        Correction of the operator. The corrected operator has no dual form.
    itemsize : {4, 8}
        Bytes per entry of the samples; products in float32 take half the time.
    route : {"auto", "lanczos", "dense", "gram"}
        "auto" chooses; any other value forces a route, which must also fit into memory.

    Returns
    -------
    Route
        Chosen route, with the others in its ``alternatives``.

    Raises
    ------
    MemoryLimitExceeded
        If the forced route, or every route, needs more memory than is available.
    InvalidParameter
        If the route is unknown, or does not exist (dual form of a corrected operator, or with at least
        as many samples as features).

    Notes
    -----
    ``tests/operators/test_routes.py`` checks the choice at sizes where one route is clearly fastest;
    ``benchmarks/routes.py`` measures the times of all three.

    Examples
    --------
    >>> from solvable.operators import HermiteFeatures
    >>> choose_route(100_000, HermiteFeatures(2, 120), 11).name
    'lanczos'
    >>> choose_route(100_000, HermiteFeatures(1, 50), 11).name
    'dense'
    """
    check_integer("n_samples", n_samples, 1)
    if not 1 <= n_vectors <= features.n_features:
        raise InvalidParameter(
            f"n_vectors is {n_vectors}; allowed: 1 to the {features.n_features} features."
        )
    limit = available_bytes() if available_memory is None else float(available_memory)
    routes = possible_routes(
        n_samples, features, n_vectors, correction=correction, itemsize=itemsize
    )
    if route != "auto":
        _check_forced(route, routes, n_samples, features, correction)
        candidates = tuple(way for way in routes if way.name == route)
    else:
        candidates = routes
    for way in candidates:
        if way.bytes <= limit:
            others = tuple(other for other in routes if other.name != way.name)
            return Route(way.name, way.flops, way.bytes, others)
    smallest = min(routes, key=lambda way: way.bytes)
    raise MemoryLimitExceeded(
        f"{', '.join(map(str, candidates))} for n = {n_samples}, D = {features.n_features} "
        f"exceeds the {gigabytes(limit)} available. The smallest route is {smallest}; or lower "
        "the dimension or the degree, or ask for fewer eigenpairs."
    )


def _check_forced(
    route: str,
    routes: tuple[Route, ...],
    n_samples: int,
    features: FeatureMap,
    correction: Correction,
) -> None:
    if route not in ("lanczos", "dense", "gram"):
        raise InvalidParameter(unknown_choice("route", route, ["auto", "lanczos", "dense", "gram"]))
    if any(way.name == route for way in routes):
        return
    if correction == "wick" and getattr(features, "degree", 1) > 1:
        raise InvalidParameter(
            "route 'gram' needs correction 'none': the operator with Wick correction has no dual "
            "form of size n. Allowed here: lanczos, dense."
        )
    raise InvalidParameter(
        f"route 'gram' needs fewer samples than features; got n = {n_samples} and "
        f"D = {features.n_features}. Allowed here: lanczos, dense."
    )
