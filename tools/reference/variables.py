"""Renders the page of the environment variables.

What a container reads comes from its own parser, and what Slipway sets from plans of the shipped
configs. Only the meaning of other programs' variables stands here.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from containers.neuron.settings import EncoderSettings
from containers.serving.settings import EnvironmentReader, ServingSettings, Variable
from containers.tensorrt.settings import GenerationSettings
from containers.triton.settings import TritonSettings
from slipway.config.fields import find
from slipway.config.schema import ModelConfig
from slipway.config.sections.serving.lmi import LmiServing
from slipway.planning.families.lmi.properties import FIELDS
from slipway.planning.families.lmi.situation import Lmi
from slipway.planning.families.lmi.variables import SERVER_VARIABLES, option_variable
from slipway.project import Project
from tools.reference.commands import commands
from tools.reference.configs import split_description

ROOT = Path(__file__).parents[2]
ENVIRONMENT = "ci"

_HEAD = """\
# Reference: variables

For anyone who runs a container outside of SageMaker, reads a plan, or sets up a machine that runs
`slipway`. This page has each environment variable: its values, its default, its meaning, and who
sets it.

A config sets most variables of a container by its own fields. `slipway plan NAME` shows what a
container gets.

This page is written by `python -m tools.reference`.
"""

_OWN = """\
The TensorRT container and the Neuron container have the same server, which reads the variables
below. Each container reads more of its own.

An unknown `SLIPWAY_` variable and a bad value stop the container before it loads the model. One log
line, `settings_invalid`, names every problem.

"Set by" says who gives the variable its value on an endpoint. A config cannot set the variables of
"you": set them where you run the image yourself.
"""

_LMI = """\
AWS's LMI images run DJL Serving, which has hundreds of variables of its own. Slipway sets few of
them. With `configuration: file` the settings are in serving.properties, and only the caches of the
oldest images are variables. With `configuration: environment` each setting is a variable. The
values come from the shipped config `{name}` with `configuration: environment`. The values of the
caches come from `flan-t5-xxl`.

`serving.environment` adds variables of your own, and `serving.options` adds `OPTION_KEY`.
"""

_TRITON = """\
Triton's front end for SageMaker reads the variables that begin with `SAGEMAKER_TRITON`. Slipway's
program reads the others, and writes Triton's model repository from them. With a repository of your
own, AWS's image reads the first kind alone. `serving.environment` adds variables of your own.
"""

_CUSTOM = """\
An image of your own gets exactly what `serving.environment` of its config says.
"""

_JOBS = """\
Compile jobs read hyperparameters, not variables. SageMaker's paths are their defaults. Variables
replace them on other machines.
"""

_COMMANDS = """\
These change what `slipway` and the embedded AWS do on your machine. boto3 and the CDK CLI read
AWS's own variables, such as `AWS_PROFILE`. [Operations](../operations.md#credentials) says which
credentials work.
"""

_JOB_VARIABLES = (
    ("SM_CHANNEL_WEIGHTS", "/opt/ml/input/data/weights", "Directory with the checkpoint."),
    ("SM_INPUT_CONFIG_DIR", "/opt/ml/input/config", "Directory with hyperparameters.json."),
    ("SM_MODEL_DIR", "/opt/ml/model", "Directory that the compiled model is written to."),
    ("SM_OUTPUT_DIR", "/opt/ml/output", "Directory that the file `failure` is written to."),
)  # fmt: skip


@dataclass(frozen=True)
class Family:
    """A container of Slipway's.

    Args:
        name: `serving.container`.
        title: its name for readers.
        config: a shipped config, whose plan has every variable that Slipway sets.
        fields: the field of each variable whose name is not the field's.
    """

    name: str
    title: str
    config: str
    fields: Mapping[str, str]


_FAMILIES = (
    Family("tensorrt", "TensorRT", "gpt2-autocomplete", {}),
    Family(
        "neuron",
        "Neuron",
        "bert-qa-inf2",
        {
            "NEURON_RT_NUM_CORES": "pipeline_cores",
            "SAGEMAKER_MODEL_SERVER_WORKERS": "workers",
            "SLIPWAY_MAX_BATCH_SIZE": "batch_size",
        },
    ),
    Family(
        "triton",
        "Triton",
        "t5-spelling",
        {
            "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "default_model",
            "SAGEMAKER_TRITON_LOG_VERBOSE": "log_verbose",
            "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "shared_memory_bytes",
            "SLIPWAY_INSTANCE_COUNT": "instance_group_count",
        },
    ),
)
_CORE = _FAMILIES[:2]
# No variable of a config in this form: its other name since 0.27, and what is variables already.
_OLDER_NAMES = ("data_type", "env")
_BY_SAGEMAKER = ("SAGEMAKER_BIND_TO_PORT",)

_LMI_VARIABLES: Mapping[str, tuple[str, str]] = {
    "HUGGINGFACE_HUB_CACHE": (
        "none",
        "Cache of Hugging Face's libraries. Images whose default is not writable get `/tmp`.",
    ),
    "TRANSFORMERS_CACHE": ("none", "The same for older releases of transformers."),
    "OPTION_GPU_MEMORY_UTILIZATION": ("`options`", "Share of the GPU's memory that vLLM takes."),
    "OPTION_MAX_MODEL_LEN": ("`options`", "Longest prompt and answer together, in tokens."),
    "SERVING_RETRY_THRESHOLD": (
        "none",
        "Requests past the time limit that a server survives. Its own default is none since 0.30.",
    ),
}

# Read by slipway, the embedded AWS and the programs that they start, beside the options' variables.
PROGRAM_VARIABLES: Mapping[str, tuple[str, str, str]] = {
    "DJL_SERVING_HOME": (
        "the embedded AWS",
        "what `make djl-serving` built",
        "Directories of DJL Serving, separated by colons, for LMI endpoints.",
    ),
    "AWS_ENDPOINT_URL": (
        "all commands that reach an account",
        "AWS",
        "Address of the embedded AWS, or of another service that answers as AWS does.",
    ),
    "AWS_REGION": (
        "`import --endpoint`",
        "the region of the profile",
        "Region of the endpoint, without `--region`. AWS_DEFAULT_REGION counts after it.",
    ),
    "HF_ENDPOINT": (
        "`publish`",
        "`https://huggingface.co`",
        "Address of the Hugging Face Hub, or of a mirror.",
    ),
    "HF_TOKEN": (
        "`publish`",
        "no token",
        "Token for private and gated repositories. Slipway stores it nowhere.",
    ),
    "JAVA_HOME": ("the embedded AWS", "`java` on the `PATH`", "Java that runs DJL Serving."),
    "JDK_JAVA_OPTIONS": (
        "the embedded AWS",
        "none",
        "Options of that Java. The embedded AWS adds its own.",
    ),
    "PATH": ("all", "the shell's", "Where `s5cmd`, `djl-serving` and `java` are looked for."),
    "REQUESTS_CA_BUNDLE": (
        "`publish`",
        "the system's",
        "Certificate authorities for uploads, unless AWS's `ca_bundle` names others.",
    ),
    "SLIPWAY_DJL_PYTHON": (
        "the embedded AWS",
        "its own interpreter",
        "Python interpreter of LMI handlers.",
    ),
    "TRITON_HOME": (
        "the embedded AWS",
        "what `make triton` installed",
        "Directory of Triton, for Triton endpoints.",
    ),
    "SLIPWAY_CONTAINER_ENGINE": (
        "`local start --containers`, `make images`",
        "the first that works",
        "The container engine: `docker`, `dockerd` (one of Slipway's own) or `podman`.",
    ),
    "XDG_CACHE_HOME": (
        "the embedded AWS",
        "`~/.cache`",
        "Directory in which `make djl-serving`, `make triton` and `make images` keep what they "
        "make, under `slipway`.",
    ),
}


def render() -> str:
    """Returns the page as Markdown."""
    project = Project(ROOT)
    parts = [
        _HEAD,
        "## Slipway's containers\n",
        _OWN,
        *_own_table(ServingSettings.read, _CORE, project),
        "## TensorRT container\n",
        *_own_table(GenerationSettings.read, _FAMILIES[:1], project),
        "## Neuron container\n",
        *_own_table(EncoderSettings.read, _FAMILIES[1:2], project),
        "## Triton container\n",
        _TRITON,
        *_own_table(TritonSettings.read, _FAMILIES[2:], project),
        "## LMI images\n",
        _LMI.format(name="qwen2-7b-vllm"),
        *_set_table(lmi_variables(project), lmi_meanings()),
        "## Your own image\n",
        _CUSTOM,
        "## Compile jobs\n",
        _JOBS,
        *_job_table(),
        "## Commands on your machine\n",
        _COMMANDS,
        *_command_table(),
    ]
    return "\n".join(parts).rstrip("\n") + "\n"


def read_by(read: Callable[[EnvironmentReader], object]) -> tuple[Variable, ...]:
    """Returns every variable that a parser reads, in its order."""
    reader = EnvironmentReader({})
    read(reader)
    return reader.variables


def lmi_variables(project: Project) -> dict[str, str]:
    """Returns what Slipway sets for LMI, by name, with the values of shipped configs."""
    caches = _planned("flan-t5-xxl", project)
    lmi = project.situation("qwen2-7b-vllm", project.environment(ENVIRONMENT))
    if not isinstance(lmi, Lmi):
        raise TypeError(f"{lmi.config.name} is not served by LMI")
    return {**caches, **lmi.environment_with(has_settings=True)}


def lmi_meanings() -> dict[str, tuple[str, str]]:
    """Returns the field and the meaning of each variable for LMI, by name."""
    meanings = dict(_LMI_VARIABLES)
    for key, path in FIELDS.items():
        section, _, name = path.partition(".")
        variable = SERVER_VARIABLES.get(key) or option_variable(key)
        if section == "serving" and variable is not None and key not in _OLDER_NAMES:
            meaning, _ = split_description(LmiServing.model_fields[name].description or "")
            meanings[variable] = (f"`{name}`", meaning)
    return meanings


def image_variables(family: str) -> dict[str, str]:
    """Returns the variables that an image of Slipway's sets for its program that serves."""
    text = (ROOT / "containers" / family / "Dockerfile").read_text("utf-8")
    stage = text.partition(" AS serving\n")[2]
    joined = stage.replace("\\\n", " ")
    lines = re.findall(r"^ENV (.*)$", joined, re.MULTILINE)
    return dict(pair.split("=", 1) for line in lines for pair in line.split())


def _planned(name: str, project: Project) -> dict[str, str]:
    plan = project.plan(name, project.environment(ENVIRONMENT), allow_unpublished=True)
    return dict(plan.container_environment)


def _own_table(
    read: Callable[[EnvironmentReader], object], families: Sequence[Family], project: Project
) -> Iterator[str]:
    yield "| variable | values | meaning | set by |"
    yield "|---|---|---|---|"
    planned = {family.name: _planned(family.config, project) for family in families}
    for variable in read_by(read):
        setters = {_set_by(variable.name, each, planned[each.name]): each for each in families}
        shown = list(setters)
        if len(shown) > 1:
            shown = [f"{text} ({family.title})" for text, family in setters.items()]
        yield (
            f"| `{variable.name}` | {_readable(variable.values)}; {_default(variable)} "
            f"| {variable.meaning} | {', '.join(shown)} |"
        )
    yield ""


def _set_by(name: str, family: Family, planned: Mapping[str, str]) -> str:
    """Returns who gives a variable its value on an endpoint of a family."""
    if name in planned:
        field = family.fields.get(name) or name.removeprefix("SLIPWAY_").lower()
        if field not in find(ModelConfig, ("serving", family.name)).sections[0].model_fields:
            raise ValueError(f"no field of `serving` is known to set {name}")
        return f"`serving.{field}`"
    if name in _BY_SAGEMAKER:
        return "SageMaker"
    image = image_variables(family.name)
    return f"the image: `{image[name]}`" if name in image else "you"


def _readable(values: str) -> str:
    return re.sub(r"\d{5,}", lambda match: f"{int(match[0]):,}", values)


def _default(variable: Variable) -> str:
    if variable.without:
        return f"without it {variable.without}"
    if variable.default is None:
        raise ValueError(f"{variable.name} does not say what its absence means")
    return f"default `{variable.default}`"


def _set_table(values: Mapping[str, str], known: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    yield "| variable | value | field of `serving` | meaning |"
    yield "|---|---|---|---|"
    for name, (field, meaning) in sorted(known.items()):
        value = f"`{values[name]}`" if name in values else "not set"
        yield f"| `{name}` | {value} | {field} | {meaning} |"
    yield ""


def _job_table() -> Iterator[str]:
    yield "| variable | default | meaning |"
    yield "|---|---|---|"
    yield from (f"| `{name}` | `{default}` | {text} |" for name, default, text in _JOB_VARIABLES)
    yield ""


def _command_table() -> Iterator[str]:
    yield "| variable | read by | without it | meaning |"
    yield "|---|---|---|---|"
    rows = {**PROGRAM_VARIABLES, **option_variables()}
    for name, (program, default, text) in sorted(rows.items()):
        yield f"| `{name}` | {program} | {default} | {text} |"
    yield ""


def option_variables() -> dict[str, tuple[str, str, str]]:
    """Returns the variables that stand for options of commands: who reads, default, meaning."""
    users = dict[str, list[str]]()
    rows = dict[str, tuple[str, str, str]]()
    every = commands()
    for words, command in every.items():
        for option in command.params:
            if option.envvar is None:
                continue
            users.setdefault(option.envvar, []).append(words)
            names = users[option.envvar]
            every_one = f"commands with `{option.opts[0]}`"
            program = f"`{words}`" if len(names) == 1 else every_one
            text = f"Stands for the option `{option.opts[0]}`. {option.help}"
            rows[option.envvar] = (program, f"`{option.default}`", text)
    return rows
