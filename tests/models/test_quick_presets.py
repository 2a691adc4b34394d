"""The quick preset of every shipped system runs to the end, and no claim fails."""

import pytest

from solvable.frame.registry import available, load
from solvable.study import Study, run_study

SHIPPED = [listing.name for listing in available() if listing.package.startswith("solvable")]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_the_quick_preset_holds(name, tmp_path):
    result = run_study(Study(load(name), preset="quick"), tmp_path, workers=1)
    assert result.complete
    assert not result.failures
    statuses = {verdict.claim: verdict.status for verdict in result.verdicts}
    assert [claim for claim, status in statuses.items() if status == "fails"] == []
    assert "holds" in statuses.values()
