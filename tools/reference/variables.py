"""The environment variables of the containers.

What a container reads comes from its own parser, and what Slipway sets from plans of the shipped
configs.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from containers.encoders.settings import EncoderSettings
from containers.neuron.settings import NeuronSettings
from containers.serving.settings import EnvironmentReader, ServingSettings, Variable
from containers.tensorrt.settings import GenerationSettings
from containers.triton.settings import TritonSettings
from slipway.config.fields import find
from slipway.config.schema import ModelConfig
from slipway.config.sections.serving.lmi import LmiServing
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.properties import FIELDS, SERVER_VARIABLES, option_variable
from slipway.project import Project
from tools.reference.tables import meaning, table

_ROOT = Path(__file__).parents[2]
_ENVIRONMENT = "ci"
_TABLES = yaml.safe_load(Path(__file__).with_name("variables.yaml").read_text("utf-8"))
# No variable of a config in this form: its other name since 0.27, and what is variables already.
_OLDER_NAMES = ("data_type", "env")
_BY_SAGEMAKER = ("SAGEMAKER_BIND_TO_PORT",)


def blocks() -> dict[str, str]:
    project = Project(_ROOT)
    return {
        "slipway": _own_table(project, ServingSettings.read, "tensorrt", "neuron"),
        "tensorrt": _own_table(project, GenerationSettings.read, "tensorrt"),
        "encoders": _own_table(project, EncoderSettings.read, "encoders"),
        "neuron": _own_table(project, NeuronSettings.read, "neuron"),
        "triton": _own_table(project, TritonSettings.read, "triton"),
        "lmi": _lmi_table(project),
    }


def _own_table(
    project: Project, read: Callable[[EnvironmentReader], object], *families: str
) -> str:
    reader = EnvironmentReader({})
    read(reader)
    described = [_TABLES["families"][name] for name in families]
    planned = [_planned(each["config"], project) for each in described]

    def set_by(variable: str) -> str:
        setters = {
            _set_by(variable, each, own): each["title"]
            for each, own in zip(described, planned, strict=True)
        }
        if len(setters) == 1:
            return next(iter(setters))
        return ", ".join(f"{text} ({title})" for text, title in setters.items())

    rows = (
        (
            f"`{each.name}`",
            f"{_readable(each.values)}; {_default(each)}",
            each.meaning,
            set_by(each.name),
        )
        for each in reader.variables
    )
    return table("variable | values | meaning | set by", rows)


def _planned(name: str, project: Project) -> dict[str, str]:
    plan = project.plan(name, project.environment(_ENVIRONMENT), allow_unpublished=True)
    return dict(plan.container_environment)


# Any: YAML.
def _set_by(name: str, described: Mapping[str, Any], planned: Mapping[str, str]) -> str:
    """Returns who gives a variable its value on an endpoint of a family."""
    family = described["family"]
    if name in planned:
        field = described["fields"].get(name) or name.removeprefix("SLIPWAY_").lower()
        if field not in find(ModelConfig, ("serving", family)).sections[0].model_fields:
            raise ValueError(f"no field of `serving` is known to set {name}")
        return f"`serving.{field}`"
    if name in _BY_SAGEMAKER:
        return "SageMaker"
    image = dict(_image_variables(family))
    return f"the image: `{image[name]}`" if name in image else "you"


def _image_variables(family: str) -> Iterator[tuple[str, str]]:
    """Yields the variables that an image of Slipway's sets for its program that serves."""
    text = (_ROOT / "containers" / family / "Dockerfile").read_text("utf-8")
    stage = text.partition(" AS serving\n")[2].replace("\\\n", " ")
    for line in re.findall(r"^ENV (.*)$", stage, re.MULTILINE):
        for pair in line.split():
            name, _, value = pair.partition("=")
            yield name, value


def _readable(values: str) -> str:
    return re.sub(r"\d{5,}", lambda match: f"{int(match[0]):,}", values)


def _default(variable: Variable) -> str:
    if variable.without:
        return f"without it {variable.without}"
    if variable.default is None:
        raise ValueError(f"{variable.name} does not say what its absence means")
    return f"default `{variable.default}`"


def _lmi_table(project: Project) -> str:
    """Returns the table of what Slipway sets for LMI, with the values of shipped configs."""
    lmi = project.deployment("qwen2-7b-vllm", project.environment(_ENVIRONMENT))
    if not isinstance(lmi, Lmi):
        raise TypeError(f"{lmi.config.name} is not served by LMI")
    values = {**_planned("flan-t5-xxl", project), **lmi.environment_with(has_settings=True)}
    known = dict(_TABLES["lmi"])
    for key, path in FIELDS.items():
        section, _, name = path.partition(".")
        variable = SERVER_VARIABLES.get(key) or option_variable(key)
        if section == "serving" and variable is not None and key not in _OLDER_NAMES:
            known[variable] = f"`{name}`", meaning(LmiServing.model_fields[name].description)
    if unknown := {*values, *SERVER_VARIABLES.values()} - known.keys():
        raise ValueError(f"the meaning of {', '.join(sorted(unknown))} is not known")
    rows = (
        (f"`{name}`", f"`{values[name]}`" if name in values else "not set", *known[name])
        for name in sorted(known)
    )
    return table("variable | value | field of `serving` | meaning", rows)
