"""`nerm solvers`: what can solve here."""

from __future__ import annotations

from typing import Any

import click

from nerm.cli.console import Console, jsonable
from nerm.cli.options import common


@click.command(epilog="\b\nExample:\n  nerm solvers\n  nerm solvers --compare")
@click.option("--compare", is_flag=True, help="Run the comparison on this machine; takes a while.")
@common
def solvers(console: Console, compare: bool) -> None:
    """List the solvers: which are installed, and what each can take."""
    if compare:
        _compare(console)
        return
    from nerm import solvers as registry
    from nerm.cli.console import make_table

    rows = [
        {
            "name": s.name,
            "package": s.package,
            "installed": s.installed(),
            "version": s.version() if s.installed() else "",
            "takes": s.needs(),
        }
        for s in registry.known().values()
    ]
    rows.sort(key=lambda row: (not row["installed"], str(row["name"])))
    cells = [[str(r["name"]), str(r["version"]) if r["installed"] else "not installed", str(r["takes"])] for r in rows]
    table = make_table(
        "Solvers (every answer is certified by nerm itself)", ["name", "version", "takes"], cells, left=3
    )
    console.result({"solvers": rows}, table)


def _compare(console: Console) -> None:
    from nerm.cli.experiments import experiment

    run = experiment("compare_solvers")
    with console.progress("Comparing solvers"):
        frame: Any = run()
    console.result({"rows": jsonable(frame.to_dict("records"))}, frame.to_string(index=False))
