"""The `nerm` command: one subcommand a file; what is heavy is imported when a command runs, so that help is quick.

Five minutes with your own table:
  nerm demo
  nerm fit people.csv --target income --viewpoint sex --out model.nerm
  nerm predict model.nerm new.csv --keep income,sex --out scored.csv
  nerm audit scored.csv --target income --viewpoint sex --score score
  nerm tradeoff people.csv --target income --viewpoint sex --report front.html

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
from nerm.cli.audit import audit
from nerm.cli.bound import bound
from nerm.cli.completion import completion
from nerm.cli.console import ended
from nerm.cli.demo import demo
from nerm.cli.fit import fit
from nerm.cli.options import epilog_of
from nerm.cli.predict import predict
from nerm.cli.reproduce import reproduce
from nerm.cli.solvers import solvers
from nerm.cli.tradeoff import tradeoff

COMMANDS = (demo, fit, predict, audit, tradeoff, bound, solvers, reproduce, completion)


class _InOrder(click.Group):
    """Lists commands in the order in which people need them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [str(command.name) for command in COMMANDS]


@click.group(
    cls=_InOrder,
    commands=list(COMMANDS),
    epilog=epilog_of(__doc__),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="nerm", message="%(prog)s %(version)s")
def cli() -> None:
    """Learn classifiers that are accurate and do not follow a second opinion, each with a certificate."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code; letters that the terminal's encoding lacks become question marks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(ended(cli, arguments))
