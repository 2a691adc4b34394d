"""Studies of a quadratic network that come with the system."""

from __future__ import annotations

from solvable.systems.base import Preset

PRESETS = {
    "quick": Preset(
        "Both targets at d = 60 through the interpolation peak; under a minute.",
        {
            "target": ("marchenko-pastur", "power-law"),
            "dimension": (60,),
            "sample_ratio": (0.1, 0.17, 0.23, 0.3, 0.4, 0.7, 1.2, 2.0),
        },
        replicates=3,
    ),
}
