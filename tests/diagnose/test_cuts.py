"""Suggested cuts: none where a cut was harmful, and the matrix after a cut."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from solvable.diagnose import cut_matrix, cut_words, diagnose_matrix, tables, words
from solvable.diagnose.cuts import LEAST_LEAD, REASONS, suggestion_of
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import Advice, MatrixDiagnosis
from solvable.diagnose.roles import role_of
from solvable.errors import InvalidData


def spiked(seed: int, shape: tuple[int, int], strengths: list[float]) -> np.ndarray:
    """Noise of unit scale and signals in random directions."""
    rng = np.random.default_rng(seed)
    p, q = shape
    left = np.linalg.qr(rng.standard_normal((p, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((q, len(strengths))))[0]
    return rng.standard_normal(shape) / q**0.5 + (left * strengths) @ right.T


STRONG = [16.0, 12.0, 9.0, 7.0, 6.0, 5.0]  # squared norm 591, against 100 of the noise


@pytest.fixture(scope="module")
def strong() -> MatrixDiagnosis:
    return diagnose_matrix(spiked(0, (100, 150), STRONG), name="fc.weight")


def test_spikes_that_hold_most_of_the_norm_have_a_statement_and_a_suggestion(strong):
    assert strong.phase == "bulk+spikes"
    assert strong.log_likelihood_ratio > LEAST_LEAD
    assert strong.suggestion.suggested
    assert (strong.suggestion.reason, tables.cut_text(strong)) == ("", "yes")
    said = cut_words.cuts(Diagnosed("f", (strong,), n_arrays=1))
    assert said[0].startswith("fc.weight: a cut at the edge of the bulk would keep 6 of 100")
    share = round(100 * strong.advice.kept_share)
    assert 80 < share < 95
    assert f"{share} % of the squared norm; the predicted matrix error would fall by" in said[0]
    assert "not the loss of the network" in said[1]
    assert "held-out data" in said[1]


def test_one_spectrum_gives_no_orders(strong):
    found = Diagnosed("f", (strong,), n_arrays=1)
    texts = [text for _, sentences in words.sections(found) for text in sentences]
    texts += words.meanings(found) + words.remarks(strong)
    texts += [words.sentence(phase.advice) for phase in words.PHASES]
    for text in texts:
        assert not re.search(r"\b(Prune|Keep|Denoise|Cut at)\b|\bprun", text), text
        # Every error in the text is named a matrix error.
        assert not re.search(r"predicted error|predicted squared distance", text, re.I), text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("encoder.layers.0.self_attn.in_proj_weight", "fused"),
        ("h.0.attn.c_attn.weight", "fused"),
        ("layers.3.attention.query_key_value.weight", "fused"),
        ("model.layers.0.self_attn.qkv_proj.weight", "fused"),
        ("transformer.wte.weight", "embedding"),
        ("model.embed_tokens.weight", "embedding"),
        ("tok_emb.weight", "embedding"),
        ("layers.0.self_attn.in_proj_weight[query]", ""),
        ("layers.0.linear1.weight", ""),
    ],
)
def test_the_same_matrix_under_the_name_of_an_embedding_or_a_fused_projection(strong, name, reason):
    shape = (150, 50) if reason == "fused" else strong.shape
    found = suggestion_of(strong, role_of(name, shape))
    assert (found.suggested, found.reason) == (not reason, reason)
    if reason:
        assert found.text == REASONS[reason]


def test_the_name_alone_withholds_the_suggestion_of_a_diagnosis():
    weights = spiked(0, (100, 150), STRONG)
    found = diagnose_matrix(weights, name="wte.weight")
    assert (found.suggestion.suggested, found.suggestion.reason) == (False, "embedding")
    assert found.advice.kept == 6  # The values that a cut would keep are stated nevertheless.
    assert tables.cut_text(found) == "no: embedding"
    (said,) = cut_words.cuts(Diagnosed("f", (found,), n_arrays=1))
    assert said.startswith("No cut is suggested for wte.weight: an embedding")


def test_a_fused_projection_that_keeps_little_of_its_norm():
    # The first reported harmful cut: 2 of 128 values, which raised the loss from 1.42 to 3.29.
    weights = spiked(1, (384, 128), [3.5, 3.0])
    found = diagnose_matrix(weights, name="layers.0.self_attn.in_proj_weight")
    assert (found.phase, found.advice.kept) == ("bulk+spikes", 2)
    assert found.advice.kept_share < 0.25
    assert found.suggestion.reason == "fused"
    # Under a neutral name the small norm is the reason against the cut.
    assert diagnose_matrix(weights, name="fc.weight").suggestion.reason == "norm"


def test_a_lead_below_ten_nats_is_too_small(strong):
    for lead, suggested in ((10.0, True), (9.99, False), (None, False)):
        found = suggestion_of(replace(strong, log_likelihood_ratio=lead), "")
        assert (found.suggested, found.reason) == (suggested, "" if suggested else "lead")


@pytest.mark.parametrize(("share", "reason"), [(0.5, ""), (0.499, "norm")])
def test_half_of_the_squared_norm_is_left(strong, share, reason):
    row = replace(strong, advice=replace(strong.advice, kept_share=share))
    assert suggestion_of(row, "").reason == reason


def test_noise_alone_has_nothing_to_keep():
    found = diagnose_matrix(np.random.default_rng(2).standard_normal((60, 90)))
    assert (found.phase, found.suggestion.reason) == ("random-like", "nothing")
    assert "a cut would keep nothing" in found.advice.text
    refused = diagnose_matrix(np.ones((3, 4)))
    assert (refused.suggestion, tables.cut_text(refused)) == (None, "–")


def test_with_initial_weights_the_change_decides(strong):
    weights = spiked(0, (100, 150), STRONG)
    rng = np.random.default_rng(3)
    # The learned part decays without an edge: signals of all sizes.
    left, right = (np.linalg.qr(rng.standard_normal((side, 100)))[0] for side in (100, 150))
    change = (left * (10.0 * np.arange(1, 101) ** -0.5)) @ right.T
    found = diagnose_matrix(weights, name="fc.weight", initial=weights - change)
    assert found.initial.difference.phase in ("bulk-decay", "heavy-tailed")
    assert (found.suggestion.suggested, found.suggestion.reason) == (False, "change")
    assert found.initial.difference.phase in found.suggestion.text
    assert suggestion_of(replace(found, initial=None), "").suggested


def test_a_change_of_noise_and_spikes_is_no_reason_against_a_cut():
    weights = spiked(0, (100, 150), STRONG)
    start = 0.1 * np.random.default_rng(4).standard_normal(weights.shape) / 150**0.5
    found = diagnose_matrix(weights, name="fc.weight", initial=start)
    assert found.suggestion.suggested
    # The rules for the change are those for the matrix: a small lead of the change is a reason
    # against.
    change = replace(found.initial.difference, log_likelihood_ratio=3.0)
    row = replace(found, initial=replace(found.initial, difference=change))
    assert suggestion_of(row, "").reason == "change"


def test_a_matrix_that_did_not_change_has_no_suggestion():
    weights = spiked(0, (100, 150), STRONG)
    found = diagnose_matrix(weights, name="fc.weight", initial=weights)
    assert (found.suggestion.suggested, found.suggestion.reason) == (False, "change")


def test_the_cut_matrix_is_nearer_to_the_signals_by_what_was_predicted(strong):
    rng = np.random.default_rng(0)
    left = np.linalg.qr(rng.standard_normal((100, 6)))[0]
    right = np.linalg.qr(rng.standard_normal((150, 6)))[0]
    signal = (left * STRONG) @ right.T
    weights = spiked(0, (100, 150), STRONG)
    cut = cut_matrix(weights, strong)
    assert np.linalg.matrix_rank(cut) == strong.advice.kept == 6
    error = float(np.linalg.norm(cut - signal))
    assert strong.advice.matrix_error_cut == pytest.approx(error, rel=0.1)
    whole = float(np.linalg.norm(weights - signal))
    assert strong.advice.matrix_error == pytest.approx(whole, rel=0.05)


def test_further_axes_and_types_stay_as_they_are(strong):
    weights = spiked(0, (100, 150), STRONG).astype(np.float32).reshape(100, 50, 3)
    cut = cut_matrix(weights, strong)
    assert (cut.shape, cut.dtype) == (weights.shape, np.float32)
    assert np.linalg.matrix_rank(cut.reshape(100, -1)) == 6


@pytest.mark.parametrize("definite", [True, False])
def test_symmetric_matrices_keep_their_eigenvectors(definite):
    rng = np.random.default_rng(5)
    noise = rng.standard_normal((90, 90))
    noise = (noise + noise.T) / (2 * 90) ** 0.5
    basis = np.linalg.qr(rng.standard_normal((90, 3)))[0]
    strengths = np.array([9.0, 7.0, 6.0]) * (1 if definite else np.array([1, -1, 1]))
    weights = noise + (basis * strengths) @ basis.T
    found = diagnose_matrix(weights)
    assert (found.symmetric, found.advice.kept) == (True, 3)
    values = np.linalg.eigvalsh(cut_matrix(weights, found))
    kept = np.sort(values[np.abs(values) > 1e-9])
    np.testing.assert_allclose(kept, np.sort([one.observed for one in found.features]), rtol=0.1)
    assert (kept < 0).sum() == (0 if definite else 1)


def test_without_a_bulk_there_is_no_edge_at_which_to_cut(strong):
    with pytest.raises(InvalidData, match="no edge at which to cut"):
        cut_matrix(np.ones((100, 150)), replace(strong, advice=None))


def test_errors_in_json_are_those_of_the_matrix(strong):
    advice = strong.to_dict()["advice"]
    names = {"matrix_error", "matrix_error_cut", "matrix_error_denoised", "matrix_error_lowered"}
    assert names == {name for name in advice if "error" in name}
    assert strong.to_dict()["suggestion"] == {"suggested": True, "reason": "", "text": ""}


def test_many_suggestions_are_counted_and_the_safest_come_first():
    rows = []
    for share in (0.6, 0.9, 0.7, 0.8, 0.65):
        advice = Advice(3, share, 1.0, 2.0, 1.0, 0.5, text=f"{share} would be left.")
        row = MatrixDiagnosis(
            f"layer.{len(rows)}.weight", (40, 50), "F32", "bulk+spikes", "",
            log_likelihood_ratio=20.0, advice=advice,
        )  # fmt: skip
        rows.append(replace(row, suggestion=suggestion_of(row, "")))
    said = cut_words.cuts(Diagnosed("f", tuple(rows), n_arrays=5))
    assert [one.split(": ")[1] for one in said[:3]] == [
        f"{share} would be left." for share in (0.9, 0.8, 0.7)
    ]
    assert said[3] == "Also worth a trial: 2 other cuts (layer.4.weight and layer.0.weight)."
