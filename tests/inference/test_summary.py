"""Texts of results."""

import numpy as np

from solvable.inference import Output, Rademacher, message_passing, state_evolution, thresholds


def test_results_are_a_few_short_lines():
    rng = np.random.default_rng(0)
    prior, output = Rademacher(0.5), Output("sign")
    X = rng.standard_normal((240, 120)) / np.sqrt(120)
    fit = message_passing(X, output.draw(X @ prior.draw(120, rng), rng), prior, output)
    law = state_evolution(prior, output, sample_ratio=np.linspace(0.2, 1.0, 30))
    for result in (fit, law, thresholds(prior, output)):
        lines = repr(result).splitlines()
        assert lines[0] == type(result).__name__
        assert len(lines) < 12
        assert max(map(len, lines)) < 200
    assert "array of shape 120" in repr(fit)
    assert "algorithmic: 1.493" in repr(thresholds(prior, output))
