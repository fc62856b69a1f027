"""The `nerm` command. Heavy modules are imported when a command runs, so that help is quick.

Five minutes with your own table:
  nerm demo
  nerm fit census.csv --target income --viewpoint sex --out model.nerm
  nerm predict model.nerm new.csv --keep income,sex --out scored.csv
  nerm audit scored.csv --target income --viewpoint sex --score score
  nerm tradeoff census.csv --target income --viewpoint sex --report front.html

Results go to standard output, everything else to standard error.
Exit codes: 0 done, 1 a fault of nerm, 2 input that cannot be used,
3 an answer that was not certified, 4 a model that is nearly constant
or whose positive rate collapsed, 5 a limit that cannot be met or promised,
130 interrupted.
"""

import io
import sys
from collections.abc import Sequence

import click

from nerm import __version__
from nerm.cli.console import WIDTH, ended
from nerm.cli.experiments import reproduce, solvers
from nerm.cli.fit import bound, demo, fit, tradeoff
from nerm.cli.predictions import audit, predict

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": WIDTH, "show_default": True}
COMMANDS = (demo, fit, predict, audit, tradeoff, bound, solvers, reproduce)


class _InOrder(click.Group):
    """List commands in the order of `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [str(command.name) for command in COMMANDS]


@click.group(
    cls=_InOrder,
    commands=list(COMMANDS),
    epilog="\b\n" + __doc__.partition("\n\n")[2].replace("\n\n", "\n\n\b\n"),
    context_settings=CONTEXT,
)
@click.version_option(__version__, prog_name="nerm", message="%(prog)s %(version)s")
def cli() -> None:
    """Fit classifiers and regressors that are neutral to a viewpoint, each with a certificate."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code; characters that the terminal cannot show are escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(ended(cli, arguments))
