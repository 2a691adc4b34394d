"""The example of a soft committee: its run at d = 500 has the plateau and the escape of the equations."""

import numpy as np
import pytest


def test_the_run_waits_on_the_plateau_and_escapes(run):
    found = run("soft_committee")
    law, plateau, errors, times = (found[name] for name in ("law", "plateau", "errors", "TIMES"))
    # Saad and Solla (1995), Figure 1: at a rate of 1 students are near the plateau from n / d = 10 on
    assert plateau.error == pytest.approx(0.02066, abs=1e-5)
    assert law.plateau[1] == pytest.approx(plateau.error, rel=2e-3)
    equations = np.interp(times, law.time, law.error)
    # fluctuations of one run are of order d^-1/2, and corrections of order 1 / d
    waiting = (times >= 10) & (times <= 40)
    assert errors[waiting].mean() == pytest.approx(equations[waiting].mean(), rel=0.05)
    escaped = np.interp(plateau.error / 2, errors[::-1], times[::-1])
    assert escaped == pytest.approx(law.escape, abs=0.5 / plateau.rate)
