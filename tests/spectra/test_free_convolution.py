"""Free convolution with a semicircle: closed forms, matrices, cumulants, symmetries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.measures import discrete, power_law
from solvable.spectra.product_measure import marchenko_pastur


def cubic_density(x, width_ratio, variance):
    root = np.sqrt(width_ratio)
    found = []
    for z in x:
        resolvent = np.roots([variance / root, -(z / root + variance), z - root + 1 / root, -1.0])
        found.append(np.abs(resolvent.imag).max() / np.pi)
    return np.array(found)


@pytest.mark.parametrize("width_ratio", [0.05, 0.2, 0.5, 0.999, 1.0, 1.5, 4.0])
@pytest.mark.parametrize("noise", [0.003, 0.1, 1.0, 2.0])
def test_marchenko_pastur_density_solves_the_cubic(width_ratio, noise):
    law = SpectralLaw(marchenko_pastur(width_ratio), noise=noise)
    x = np.concatenate([np.linspace(low, high, 52)[1:-1] for low, high in law.edges])
    np.testing.assert_allclose(law.density(x), cubic_density(x, width_ratio, noise**2), atol=1e-9)
    assert law.weights.sum() == pytest.approx(1, abs=1e-9)
    assert law.integrate(law.x) == pytest.approx(np.sqrt(width_ratio), abs=1e-8)
    assert law.integrate(law.x**2) == pytest.approx(1 + width_ratio + noise**2, abs=1e-8)


def test_atoms_of_a_discretised_continuum_give_the_continuum_while_their_bumps_merge():
    smooth = marchenko_pastur(0.2)
    angle = np.arange(1, 200) * np.pi / 200
    low, high = smooth.bulk
    places = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    weights = np.sin(angle) ** 2 / places
    atoms = discrete(np.append(0, places), np.append(0.8, 0.2 * weights / weights.sum()))
    for noise in (1.0, 2.0):
        exact, law = SpectralLaw(smooth, noise=noise), SpectralLaw(atoms, noise=noise)
        np.testing.assert_allclose(law.edges, exact.edges, rtol=1e-9)
        x = np.linspace(*law.edges[0], 52)[1:-1]
        np.testing.assert_allclose(law.density(x), exact.density(x), atol=1e-9)
        np.testing.assert_allclose(law.hilbert(x), exact.hilbert(x), atol=1e-9)


def test_single_atom_gives_the_semicircle():
    law = SpectralLaw([3.0], noise=0.5)
    np.testing.assert_allclose(law.edges, [[2.0, 4.0]], rtol=1e-14)
    x = np.linspace(1.5, 4.5, 31)
    inside = np.sqrt(np.maximum(1 - (x - 3) ** 2, 0))
    np.testing.assert_allclose(law.density(x), inside * 2 / np.pi, atol=1e-7)
    outside = np.sqrt(np.maximum((x - 3) ** 2 - 1, 0)) * np.sign(x - 3)
    np.testing.assert_allclose(law.hilbert(x), 2 * (x - 3 - outside), atol=1e-7)


def test_components_of_two_atoms_split_where_the_theory_says():
    # (w^(1/3) + w'^(1/3))³ / gap² = 1 / t: at gap 2, t = 1 for two halves.
    assert SpectralLaw([-1.0, 1.0], noise=1 - 1e-6).edges.shape == (2, 2)
    assert SpectralLaw([-1.0, 1.0], noise=1 + 1e-6).edges.shape == (1, 2)
    cusp = SpectralLaw([-1.0, 1.0], noise=1.0)
    assert cusp.integrate(cusp.x**2) == pytest.approx(2, abs=1e-7)
    assert cusp.integrate(cusp.x**4) == pytest.approx(1 + 4 + 2, abs=1e-6)


def test_free_cumulants_add():
    s = np.array([-2.0, 0.3, 0.3, 1.0, 4.0])
    for noise in (0.1, 0.7, 3.0):
        law, t = SpectralLaw(s, noise=noise), noise**2
        m1, m2, m3, m4 = (np.mean(s**k) for k in range(1, 5))
        moments = [law.integrate(law.x**k) for k in range(1, 5)]
        # Moments of a free sum with a semicircular element.
        exact = [m1, m2 + t, m3 + 3 * t * m1, m4 + 4 * t * m2 + 2 * t * m1**2 + 2 * t**2]
        np.testing.assert_allclose(moments, exact, rtol=1e-9)


def test_isolated_atoms_one_component_each():
    law = SpectralLaw(np.arange(400.0), noise=0.5)
    assert law.masses.size == 400
    np.testing.assert_allclose(law.masses, 1 / 400)
    assert law.weights.sum() == pytest.approx(1, abs=1e-10)
    assert law.integrate(law.x**2) == pytest.approx(np.mean(np.arange(400.0) ** 2) + 0.25)


def test_power_law_has_bulk_and_spikes():
    spectrum = power_law(dimension=400, exponent=1.0)
    law = SpectralLaw(spectrum, noise=1.0)
    assert law.weights.sum() == pytest.approx(1, abs=1e-9)
    assert law.integrate(law.x**2) == pytest.approx(2, abs=1e-8)
    strongest = spectrum.nodes[-1]
    # The bump of a spike of weight 1/d is centred at s + delta² E[1 / (s - s')].
    others = np.mean(1 / (strongest - spectrum.nodes[:-1])) * 399 / 400
    assert law.edges[-1].mean() == pytest.approx(strongest + others, rel=1e-3)


def test_eigenvalues_of_a_matrix_follow_the_law():
    rng = np.random.default_rng(5)
    d, noise = 500, 0.6
    s = np.sort(rng.choice([0.0, 1.0, 3.0], size=d, p=[0.5, 0.3, 0.2]))
    z = rng.standard_normal((d, d))
    z = (z + z.T) / np.sqrt(2 * d)
    eigenvalues = np.linalg.eigvalsh(np.diag(s) + noise * z)
    law = SpectralLaw(s, noise=noise)
    cumulative = np.cumsum(law.weights) - law.weights / 2
    counted = np.searchsorted(eigenvalues, law.x) / d
    # Rigid spectrum: counts fluctuate by O(log d), and a node holds half its weight.
    assert np.abs(cumulative - counted).max() < 3 * np.log(d) / d + law.weights.max()


def test_hilbert_transform_against_a_principal_value():
    law = SpectralLaw([-1.0, 0.5, 2.0], noise=0.9)
    for x in (-1.3, 0.2, 1.7):
        # Remove the singularity: pair nodes with the exact principal value of the density at x.
        here = float(law.density(x))
        grid = np.concatenate([np.linspace(a, b, 20001) for a, b in law.edges])
        density = law.density(grid)
        keep = np.abs(grid - x) > 1e-9
        smooth = np.where(keep, (density - here) / np.where(keep, x - grid, 1.0), 0.0)
        pole = here * np.sum(np.log(np.abs((x - law.edges[:, 0]) / (x - law.edges[:, 1]))))
        assert float(law.hilbert(x)) == pytest.approx(np.trapezoid(smooth, grid) + pole, abs=3e-3)


def test_outlier_map_and_its_inverse():
    law = SpectralLaw([-1.0, 1.0], noise=0.8)
    strengths = np.array([-4.0, 0.0, 1.2, 1.9, 7.0])
    position, overlap = law.outlier(strengths)
    seen = np.isfinite(position)
    assert seen.tolist() == [True, True, False, True, True]
    assert (overlap[~seen] == 0).all()
    np.testing.assert_allclose(law.preimage(position[seen])[0], strengths[seen], atol=1e-7)
    exact = 1 - 0.64 * np.mean((strengths[seen, None] - np.array([-1.0, 1.0])) ** -2, axis=1)
    np.testing.assert_allclose(overlap[seen], exact)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=8),
    st.floats(0.05, 3),
    st.floats(0.1, 10),
    st.floats(-10, 10),
)
def test_shift_and_scale(values, noise, scale, shift):
    s = np.round(np.array(values), 3)
    law = SpectralLaw(s, noise=noise)
    moved = SpectralLaw(scale * s + shift, noise=scale * noise)
    assert law.weights.sum() == pytest.approx(1, abs=1e-7)
    assert law.integrate(law.x**2) == pytest.approx(np.mean(s**2) + noise**2, rel=1e-6)
    x = np.linspace(s.min() - noise, s.max() + noise, 9)
    atol = 1e-6 / noise
    np.testing.assert_allclose(moved.density(scale * x + shift) * scale, law.density(x), atol=atol)
    np.testing.assert_allclose(moved.hilbert(scale * x + shift) * scale, law.hilbert(x), atol=atol)


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan, np.inf, 1e-200])
def test_noise_out_of_range(noise):
    with pytest.raises(InvalidParameter, match="noise"):
        SpectralLaw([1.0], noise=noise)


def test_unusable_places():
    with pytest.raises(InvalidData, match="NaN"):
        SpectralLaw([1.0], noise=1.0).density([np.nan])
    with pytest.raises(InvalidParameter, match="double precision"):
        SpectralLaw([1e9], noise=1e-9)


def test_a_place_asked_for_again_is_found_once_and_stays_the_same():
    """Results are equal alone, cached or among others; changing returned arrays has no effect."""
    law = SpectralLaw(power_law(dimension=17, exponent=0.8), noise=0.4)
    places = np.linspace(law.edges[0, 0] - 0.3, law.edges[-1, 1] + 0.3, 9)
    u, height = law.preimage(places)
    for place, right, high in zip(places, u, height, strict=True):
        for shape in ((), (1,)):
            found = law.preimage(np.full(shape, place))
            assert all(values.shape == shape for values in found)
            np.testing.assert_allclose(found[0], right, rtol=1e-12)
            np.testing.assert_allclose(found[1], high, atol=1e-7)
            if shape:
                found[0][:], found[1][:] = np.nan, np.nan
