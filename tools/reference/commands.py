"""Renders docs/commands.md from the command line itself."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import typer

from slipway.cli.main import app

_BEGINNING = """\
# Commands

`slipway` works on the project that the current folder belongs to. `cdk` deploys, compares and
destroys stacks.

{table}

## What all commands have in common

- Exit code 0 means success. 1 means something that you can put right: the report on standard error
  says where it is, and the remedy. 2 means a fault of Slipway, with a traceback: please report it
  in the issue tracker of the repository that you have Slipway from. 3 means that the command
  worked, and that its answer is no: [exit codes](ci.md#exit-codes-and-json).
- Each problem of a report ends with a code. [Troubleshooting](troubleshooting.md) and
  `slipway explain CODE` explain it.
- `--json` prints one JSON document on standard output instead of text, also for a report.
- `--env NAME` picks an environment of `environments.yaml`. Without it, the variable `SLIPWAY_ENV`
  names the environment. Without both it is `local`, the embedded AWS.
- `slipway --version` prints the version. `slipway COMMAND --help` prints the same facts as this
  page.

The CDK CLI takes the environment and the models as context:
`cdk deploy NAME -c models=NAME -c env=production`.
"""


@dataclass(frozen=True)
class Example:
    """A command line as one types it, and the reason to type it."""

    line: str
    purpose: str


# Every command, in the order in which a model needs them.
JOURNEY: Mapping[str, tuple[str, ...]] = {
    "Write a config": ("init", "import", "triton-repository"),
    "Check it": ("validate", "plan", "schema", "explain"),
    "Publish and deploy": ("publish", "preflight", "iam"),
    "Call it and watch it": ("invoke", "status"),
    "Take it away": ("leftovers", "prune"),
    "The embedded AWS": (
        "local start",
        "local env",
        "local status",
        "local pass-minutes",
        "local stop",
    ),
}

# At least one for every command. A test parses each with the command's own parser.
EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    "validate": (
        Example("slipway validate", "Check every model config."),
        Example("slipway validate 'bert-*' --env production", "Check some models for production."),
        Example("slipway validate --sarif problems.sarif", "Show problems in a code review."),
    ),
    "plan": (
        Example("slipway plan gpt2-autocomplete", "Read what will be deployed, and its price."),
        Example(
            "slipway plan flan-t5-xxl --env production --allow-unpublished",
            "Plan before anything is published.",
        ),
    ),
    "schema": (Example("slipway schema --check", "Fail in CI if the schema is stale."),),
    "explain": (
        Example("slipway explain SW201", "Read what a problem's code means."),
        Example("slipway explain", "List all codes."),
    ),
    "init": (
        Example("slipway init my-model", "Answer a question for each fact."),
        Example(
            "slipway init my-model --container lmi --family qwen2 --parameters 7615616512 "
            "--instance ml.g5.2xlarge --weights s3://my-bucket/qwen/ --latency-milliseconds 20000",
            "Give all facts at once; nothing is asked.",
        ),
        Example(
            "slipway init my-gpt2 --weights my-checkpoint --instance ml.g4dn.xlarge "
            "--latency-milliseconds 600",
            "A checkpoint in a folder of the project says its family, parameters and shape.",
        ),
    ),
    "import": (
        Example(
            "slipway import my-model --properties old/llama --instance ml.g5.12xlarge --dry-run",
            "Print the config of an LMI model, with a comment for each guess.",
        ),
        Example(
            "slipway import my-model --properties old/llama --instance ml.g5.12xlarge "
            "--framework djl-lmi --version 0.32.0 --weights s3://my-bucket/llama-2-13b/",
            "Write it, for the image that serves the model today.",
        ),
        Example(
            "slipway import my-model --call call.json",
            "Write the config of a notebook's call, whose arguments are in a JSON file.",
        ),
        Example(
            "slipway import my-model --endpoint my-endpoint --region eu-west-1",
            "Write the config of an endpoint that is running. Nothing is changed there.",
        ),
        Example(
            "slipway import my-model --hub Qwen/Qwen2.5-7B-Instruct --instance ml.g5.2xlarge",
            "Write the config of a checkpoint on the Hugging Face Hub.",
        ),
    ),
    "triton-repository": (
        Example(
            "slipway triton-repository search --graph build/model.onnx --max-batch-size 16 "
            "--instance-group-count 2",
            "Write `triton/search` for an ONNX graph.",
        ),
    ),
    "publish": (
        Example("slipway publish gpt2-autocomplete", "Publish a model to the embedded AWS."),
        Example("slipway publish --all", "Publish every model that has a sample."),
        Example("slipway publish flan-t5-xxl --env production", "Publish to an account."),
        Example(
            "slipway publish flan-t5-xxl --env production --verify",
            "Read every published byte again, and send what is missing or wrong.",
        ),
        Example(
            "slipway publish flan-t5-xxl --env production --remote",
            "Publish in a build of the account, next to S3. The same command joins it again.",
        ),
        Example(
            "slipway publish flan-t5-xxl --env production --remote --cancel",
            "Stop that build.",
        ),
        Example(
            "slipway publish flan-t5-xxl --env production --from staging",
            "Copy to production what was published to staging, and build nothing.",
        ),
    ),
    "preflight": (
        Example(
            "slipway preflight gpt2-autocomplete --env production",
            "Check the account before a first deployment or a change of instances.",
        ),
    ),
    "leftovers": (
        Example(
            "slipway leftovers gpt2-autocomplete",
            "After `cdk destroy`, check that nothing is left.",
        ),
        Example(
            "slipway leftovers --env production",
            "Find stacks of models whose files were removed.",
        ),
    ),
    "prune": (
        Example("slipway prune --env production", "List what nothing refers to."),
        Example(
            "slipway prune --env production --ref main --ref v1.4 --yes",
            "Delete what neither these refs nor anything in the account needs.",
        ),
    ),
    "status": (
        Example("slipway status gpt2-autocomplete --env production", "Find out what is wrong."),
        Example("slipway status gpt2-autocomplete --lines 100", "Read more of the log."),
    ),
    "invoke": (
        Example(
            """slipway invoke gpt2-autocomplete '{"inputs": "The maximum number of"}'""",
            "Send one request.",
        ),
        Example(
            "slipway invoke gpt2-autocomplete --file request.json --json",
            "Send a request from a file.",
        ),
        Example(
            'slipway invoke t5-spelling --text "speling" --text "recieve"',
            "Send two texts to a model of the container `triton`, and get two texts.",
        ),
        Example(
            "slipway invoke summaries --file request.json --wait 3600",
            "Send a request to an asynchronous endpoint, and wait for an hour at most.",
        ),
        Example(
            """slipway invoke gpt2-autocomplete '{"inputs": "The"}' --wait 900""",
            "Send a request to an endpoint that may sleep, and wait until it is awake.",
        ),
    ),
    "iam": (
        Example(
            "slipway iam gpt2-autocomplete --env production",
            "Print the rights that a CI pipeline needs.",
        ),
    ),
    "local start": (
        Example("slipway local start", "Start it at http://localhost:4566."),
        Example("slipway local start --port 0", "Start it at any free port."),
        Example(
            "slipway local start --containers", "Run endpoints in the images of `make images`."
        ),
        Example(
            "slipway local start --refuse copy-count-0",
            "Refuse to create an inference component without copies.",
        ),
        Example(
            "slipway local start --without-capacity ml.g5.xlarge",
            "See an endpoint take the next type of its pool.",
        ),
    ),
    "local stop": (Example("slipway local stop", "Stop it; its account is lost."),),
    "local status": (Example("slipway local status", "See which endpoints it serves."),),
    "local pass-minutes": (
        Example(
            "slipway local pass-minutes 20",
            "Let twenty minutes without requests pass, after which a fleet has gone to zero.",
        ),
    ),
    "local env": (
        Example('eval "$(slipway local env)"', "Point this shell's commands at the embedded AWS."),
    ),
}


def commands() -> dict[str, Any]:
    """Returns every command by its words, such as `local start`, in the order of `--help`.

    The values are Typer's command objects, for which Typer exports no type.
    """
    return dict(_commands(typer.main.get_command(app), ()))


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, each in command.commands.items():
        if hasattr(each, "commands"):
            yield from _commands(each, (*words, name))
        else:
            yield " ".join((*words, name)), each


def render() -> str:
    """Returns the page as Markdown."""
    found = commands()
    rows = ["| | |", "|---|---|"]
    sections = []
    for heading, group in JOURNEY.items():
        links = (f"[{words}](#slipway-{words.replace(' ', '-')})" for words in group)
        rows.append(f"| {heading} | {', '.join(links)} |")
        sections += [f"## {heading}", "", *(_section(words, found[words]) for words in group)]
    return "\n".join([_BEGINNING.format(table="\n".join(rows)), *sections])


def _summary(command: Any) -> str:
    return str(command.help).partition("\n")[0]


def _section(words: str, command: Any) -> str:
    usage = f"slipway {words}"
    for parameter in _arguments(command):
        name = parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
        usage += f" {name}" if parameter.required else f" [{name}]"
    options = _options(command)
    usage += " [OPTIONS]" if options else ""
    lines = [f"### slipway {words}", "", _summary(command), "", "```text", usage, "```", ""]
    if arguments := _arguments(command):
        lines += ["| argument | |", "|---|---|"]
        lines += [f"| `{each.name.upper()}` | {each.help} |" for each in arguments]
        lines.append("")
    if options:
        lines += ["| option | | without it |", "|---|---|---|"]
        lines += [f"| `{each.opts[0]}` | {each.help} | {_default(each)} |" for each in options]
        lines.append("")
    for example in EXAMPLES[words]:
        lines += [example.purpose, "", "```sh", example.line, "```", ""]
    return "\n".join(lines)


def _arguments(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "argument"]


def _options(command: Any) -> list[Any]:
    found = (each for each in command.params if each.param_type_name == "option")
    return [each for each in found if each.name != "help"]


def _default(option: Any) -> str:
    shown = "" if option.default in (None, False) else f"`{option.default}`"
    if option.envvar is None:
        return shown
    variable = f"the variable `{option.envvar}`"
    return f"{variable}, or {shown}" if shown else variable


def words_of(line: str) -> list[str]:
    """Returns the words of an example behind `slipway`, as a shell splits them."""
    inner = line.removeprefix('eval "$(').removesuffix(')"')
    return shlex.split(inner)[1:]
