"""One small study for all tests of the report."""

from __future__ import annotations

import pytest

from nerm.report.fitting import Settings
from nerm.report.study import run_study
from nerm.tables import make_task, parse_table
from tests.cli.conftest import as_csv, census


@pytest.fixture(scope="session")
def study():
    rows = [{**row, "job": f"<b>{row['job']}</b> & co" if row["job"] else ""} for row in census()]
    task = make_task(parse_table(as_csv(rows), "<census>.csv"), "income", "sex")
    return run_study(
        task,
        Settings(etas=(0.0, 0.2, 0.5, 1.0, 5.0)),
        command="nerm fit census.csv --target income --viewpoint sex",
    )
