"""`nerm bound`: what is guaranteed about a model beyond the rows at hand.

Examples
--------
  nerm bound people.csv --target income --viewpoint sex
  nerm bound people.csv --target income --viewpoint sex --eta 5 --weights uniform --class-weight none --delta
  0.01
"""

from typing import Any

import click

from nerm.cli.console import Console
from nerm.cli.options import epilog_of, fit_options, level_of, request_of, study_options


@click.command(epilog=epilog_of(__doc__))
@click.argument("data", metavar="DATA.csv")
@fit_options
@study_options
def bound(console: Console, data: str, **options: Any) -> int:
    """Fit, and state every bound with what it assumes.

    The theorems bound the relaxed risk C_psi and need --eta, --weights uniform and --class-weight none; only
    held-out rows bound C_sgn and the difference in positive rates. A bound that promises nothing is called
    vacuous.
    """
    level = level_of(options)
    task, settings = request_of(data, options)
    from nerm.cli.fit import fit_json, statements_of
    from nerm.cli.rendering import statements_json, statements_table
    from nerm.report import fit_table

    with console.progress("Fitting") as progress:
        fitted = fit_table(task, settings, level, options["test"], progress)
    found = fit_json(fitted)
    console.notes([*task.notes, *found["notes"]])
    statements = statements_of(fitted)
    names = ("asked", "objective", "rows", "status", "relative_gap", "eta", "lam", "lam_form", "warning")
    plain: dict[str, Any] = {name: found[name] for name in names}
    stated = zip(statements_json(statements), statements, strict=True)
    plain |= {"delta": settings.delta, "bounds": [{**line, "holds": s.holds} for line, s in stated]}
    first = filter(None, [found["warning"]])
    console.result(plain, *first, found["objective"], statements_table(statements, settings.delta))
    return console.code({found["solver"]: found["status"]}, collapsed=fitted.collapse is not None)
