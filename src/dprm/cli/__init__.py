"""The command `dprm`: one file per command, each importing what it needs when it runs, so that `--help` is instant."""

from typing import Annotated

import typer

from dprm import __version__
from dprm.cli.audit import audit
from dprm.cli.compare import compare
from dprm.cli.data import data
from dprm.cli.demo import demo
from dprm.cli.doctor import doctor
from dprm.cli.evaluation import evaluation
from dprm.cli.fit import fit
from dprm.cli.generate import generate
from dprm.cli.hosts import hosts
from dprm.cli.impute import impute
from dprm.cli.merge import merge
from dprm.cli.policy import policy
from dprm.cli.probe import probe
from dprm.cli.repair import repair
from dprm.cli.report import report
from dprm.cli.study import study
from dprm.cli.terminal import say
from dprm.cli.theory import theory
from dprm.cli.train import train

app = typer.Typer(
    name="dprm",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    help=(
        "**dprm** decides which masked position a discrete diffusion model reveals next, "
        "by what that choice does to the final reward."
    ),
)


def _version(asked: bool) -> None:
    if asked:
        say(f"dprm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


for command in (demo, hosts, data, train, fit, compare, probe, study, audit, report, policy, theory):
    app.command()(command)
app.command()(merge)
app.command()(doctor)
app.command()(repair)
app.command()(generate)
app.command()(impute)
app.command(name="eval")(evaluation)


def main() -> None:
    """Entry point of the console script."""
    app()
