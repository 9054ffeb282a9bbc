"""`slipway`: registers the commands and turns outcomes into exit codes.

Exit code 0 is success. 1 is a problem that the user can solve (a report on standard error). 2 is a
bug of Slipway (a traceback). 3 is the answer no of a command that worked: `leftovers` found some,
`local status` found nothing running, `local start --port` found it running on another port.
"""

import os
import sys
from typing import Annotated

# Before pydantic is imported: it would read the metadata of every installed package in search of
# plugins of its own, and Slipway uses none. A user's own setting stays.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import typer

import slipway
from slipway.cli import local
from slipway.cli.bench import bench
from slipway.cli.cdk import deploy, destroy, diff
from slipway.cli.cost import cost
from slipway.cli.dashboard import dashboard
from slipway.cli.explain import explain
from slipway.cli.fit import fit
from slipway.cli.iam import iam
from slipway.cli.import_ import import_config
from slipway.cli.init import init
from slipway.cli.invoke import invoke
from slipway.cli.leftovers import leftovers
from slipway.cli.list_ import list_models
from slipway.cli.logs import logs
from slipway.cli.new import new
from slipway.cli.output import is_forced, print_error
from slipway.cli.overview import Journeys, print_overview
from slipway.cli.plan import plan
from slipway.cli.preflight import preflight
from slipway.cli.prune import prune
from slipway.cli.publish import publish
from slipway.cli.review import review
from slipway.cli.schema import schema
from slipway.cli.shadow_report import shadow_report
from slipway.cli.simulate import simulate
from slipway.cli.status import status
from slipway.cli.triton_repository import triton_repository
from slipway.cli.ui import ui
from slipway.cli.upgrade import upgrade
from slipway.cli.validate import validate
from slipway.errors import UserError
from slipway.full_disk import no_room_problem

_BUG = (
    "This is a bug in Slipway. Please report it, with the command and the traceback above, in the "
    "issue tracker of the repository that you have Slipway from. Remove secrets first."
)

app = typer.Typer(
    name="slipway",
    help="SageMaker endpoints as code: one YAML file per model, deployed with the CDK CLI.",
    cls=Journeys,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(validate)
app.command()(plan)
app.command()(cost)
app.command()(simulate)
app.command()(review)
app.command()(upgrade)
app.command()(schema)
app.command()(explain)
app.command()(new)
app.command()(init)
app.command()(fit)
app.command("import")(import_config)
app.command()(triton_repository)
app.command()(publish)
app.command()(preflight)
app.command()(diff)
app.command()(deploy)
app.command()(destroy)
app.command()(leftovers)
app.command()(prune)
app.command()(status)
app.command("list")(list_models)
app.command()(logs)
app.command()(dashboard)
app.command()(shadow_report)
app.command()(ui)
app.command()(invoke)
app.command()(bench)
app.command()(iam)
app.add_typer(local.app, name="local")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if is_forced():
        context.color = True  # else Typer takes colours out of pipes
    if version:
        typer.echo(slipway.__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print_overview()


def main() -> None:
    try:
        code = app(standalone_mode=False)
    except UserError as error:
        print_error(error, as_json="--json" in sys.argv[1:])
        sys.exit(1)
    except typer.Exit as exit_request:
        sys.exit(exit_request.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("Stopped.", err=True)
        sys.exit(1)
    except Exception as error:
        no_room = no_room_problem(error)
        if no_room is not None:
            print_error(no_room, as_json="--json" in sys.argv[1:])
            sys.exit(1)
        # A misspelt option or a missing argument: the parser's own report, then the user's code.
        show = getattr(error, "show", None)
        if show is None:
            import traceback

            traceback.print_exc()
            typer.echo(_BUG, err=True)
            sys.exit(2)
        show()
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)
