"""Laws of random matrices: bulk edges, densities, outliers, overlaps and rounding at threshold."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.spectra.anisotropic import (
        DirectionProfile,
        Outlier,
        direction_profile,
    )
    from solvable.spectra.denoiser import (
        denoised,
        denoising_error,
        feature_errors,
        overlaps,
    )
    from solvable.spectra.density import (
        SpectralDensity,
        weighted_density,
    )
    from solvable.spectra.edges import (
        BulkEdges,
        semicircle,
        semicircle_edges,
        tracy_widom_quantile,
        weighted_bulk,
        weighted_bulk_edges,
    )
    from solvable.spectra.fit import (
        BulkFit,
        fit_bulk,
    )
    from solvable.spectra.free_convolution import (
        SpectralLaw,
    )
    from solvable.spectra.functionals import (
        TruncatedMoments,
        truncated_moments,
    )
    from solvable.spectra.label_emergence import (
        balanced_emergence_ratio,
        emergence_ratio,
        emergence_windows,
    )
    from solvable.spectra.label_law import (
        LabelLaw,
    )
    from solvable.spectra.label_weighted import (
        LabelWeightedSpectrum,
        SpectrumEnd,
        bulk_function,
        label_weighted_spectrum,
        spike_function,
    )
    from solvable.spectra.measures import (
        DiscreteMeasure,
        Measure,
        bin_tail,
        discrete,
        power_law,
    )
    from solvable.spectra.outliers import (
        resolvent_outliers,
    )
    from solvable.spectra.product_measure import (
        MarchenkoPasturMeasure,
        marchenko_pastur,
    )
    from solvable.spectra.spiked import (
        critical_profile,
        overlap_at_threshold,
        rounding_width,
        spiked_overlap,
        spiked_positions,
        threshold_ratio,
        transition_width,
        with_chance,
    )
    from solvable.spectra.spikes import (
        Background,
        SpikePrediction,
        WeightedSample,
        compress_sample,
        predict_spikes,
        spike_excess,
    )
    from solvable.spectra.symmetric_fit import (
        SymmetricFit,
        fit_symmetric,
    )
    from solvable.spectra.tail import (
        TailFit,
        fit_tail,
    )

_HOMES = {
    "Background": "spikes",
    "BulkEdges": "edges",
    "BulkFit": "fit",
    "DirectionProfile": "anisotropic",
    "DiscreteMeasure": "measures",
    "LabelLaw": "label_law",
    "LabelWeightedSpectrum": "label_weighted",
    "MarchenkoPasturMeasure": "product_measure",
    "Measure": "measures",
    "Outlier": "anisotropic",
    "SpectralDensity": "density",
    "SpectralLaw": "free_convolution",
    "SpectrumEnd": "label_weighted",
    "SpikePrediction": "spikes",
    "SymmetricFit": "symmetric_fit",
    "TailFit": "tail",
    "TruncatedMoments": "functionals",
    "WeightedSample": "spikes",
    "balanced_emergence_ratio": "label_emergence",
    "bin_tail": "measures",
    "bulk_function": "label_weighted",
    "compress_sample": "spikes",
    "critical_profile": "spiked",
    "denoised": "denoiser",
    "denoising_error": "denoiser",
    "direction_profile": "anisotropic",
    "discrete": "measures",
    "emergence_ratio": "label_emergence",
    "emergence_windows": "label_emergence",
    "feature_errors": "denoiser",
    "fit_bulk": "fit",
    "fit_symmetric": "symmetric_fit",
    "fit_tail": "tail",
    "label_weighted_spectrum": "label_weighted",
    "marchenko_pastur": "product_measure",
    "overlap_at_threshold": "spiked",
    "overlaps": "denoiser",
    "power_law": "measures",
    "predict_spikes": "spikes",
    "resolvent_outliers": "outliers",
    "rounding_width": "spiked",
    "semicircle": "edges",
    "semicircle_edges": "edges",
    "spike_excess": "spikes",
    "spike_function": "label_weighted",
    "spiked_overlap": "spiked",
    "spiked_positions": "spiked",
    "threshold_ratio": "spiked",
    "tracy_widom_quantile": "edges",
    "transition_width": "spiked",
    "truncated_moments": "functionals",
    "weighted_bulk": "edges",
    "weighted_bulk_edges": "edges",
    "weighted_density": "density",
    "with_chance": "spiked",
}

__all__ = [
    "Background",
    "BulkEdges",
    "BulkFit",
    "DirectionProfile",
    "DiscreteMeasure",
    "LabelLaw",
    "LabelWeightedSpectrum",
    "MarchenkoPasturMeasure",
    "Measure",
    "Outlier",
    "SpectralDensity",
    "SpectralLaw",
    "SpectrumEnd",
    "SpikePrediction",
    "SymmetricFit",
    "TailFit",
    "TruncatedMoments",
    "WeightedSample",
    "balanced_emergence_ratio",
    "bin_tail",
    "bulk_function",
    "compress_sample",
    "critical_profile",
    "denoised",
    "denoising_error",
    "direction_profile",
    "discrete",
    "emergence_ratio",
    "emergence_windows",
    "feature_errors",
    "fit_bulk",
    "fit_symmetric",
    "fit_tail",
    "label_weighted_spectrum",
    "marchenko_pastur",
    "overlap_at_threshold",
    "overlaps",
    "power_law",
    "predict_spikes",
    "resolvent_outliers",
    "rounding_width",
    "semicircle",
    "semicircle_edges",
    "spike_excess",
    "spike_function",
    "spiked_overlap",
    "spiked_positions",
    "threshold_ratio",
    "tracy_widom_quantile",
    "transition_width",
    "truncated_moments",
    "weighted_bulk",
    "weighted_bulk_edges",
    "weighted_density",
    "with_chance",
]


def __getattr__(name: str) -> Any:
    """Import the module of a name when the name is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
