"""The groups of `slipway --help`: commands by what a user is doing, each with an example."""

from collections.abc import Mapping
from typing import Any, Final

from typer.core import TyperGroup

JOURNEYS: Final[Mapping[str, Mapping[str, str]]] = {
    "Write a config": {
        "new": "slipway new models",
        "init": "slipway init ranker --weights models/ranker",
        "import": "slipway import ranker --endpoint ranker-prod",
        "fit": "slipway fit ranker --rate 2 --p99 20000",
        "triton-repository": "slipway triton-repository ranker --graph model.onnx",
    },
    "Check it": {
        "validate": "slipway validate",
        "plan": "slipway plan ranker --env production",
        "cost": "slipway cost ranker --env production",
        "simulate": "slipway simulate ranker --traffic day.csv --service-time 80",
        "review": "slipway review --base main",
        "upgrade": "slipway upgrade --check 0.2.0",
        "schema": "slipway schema --check",
        "explain": "slipway explain SW304",
    },
    "Publish and deploy": {
        "publish": "slipway publish ranker --env production",
        "preflight": "slipway preflight ranker --env production",
        "diff": "slipway diff ranker --env production",
        "deploy": "slipway deploy ranker --env production",
        "iam": "slipway iam ranker --env production",
    },
    "Call it and watch it": {
        "invoke": "slipway invoke ranker --text 'a question'",
        "bench": "slipway bench ranker --env production --design mine.yaml",
        "status": "slipway status ranker --env production",
        "list": "slipway list",
        "logs": "slipway logs ranker --follow",
        "dashboard": "slipway dashboard ranker --html ranker.html --hours 24",
        "shadow-report": "slipway shadow-report ranker --since 2h",
        "ui": "slipway ui",
    },
    "Take it away": {
        "destroy": "slipway destroy ranker --env production",
        "leftovers": "slipway leftovers ranker --env production",
        "prune": "slipway prune --env production",
    },
    "The embedded AWS": {"local": "slipway local start"},
}


class Journeys(TyperGroup):
    """Prints the commands in their groups, with their whole sentences."""

    # Any: classes of Click, which Typer has a copy of.
    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # Click's
        """Writes a section for each journey."""
        for title, examples in JOURNEYS.items():
            rows = []
            for name, example in examples.items():
                command = self.commands[name]
                rows += [(name, command.get_short_help_str(limit=1000)), ("", f"$ {example}")]
            with formatter.section(title):
                formatter.write_dl(rows)
