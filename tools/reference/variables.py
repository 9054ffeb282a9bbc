"""The environment variables of the containers.

What a container reads comes from its own parser, and what Slipway sets from plans of the shipped
configs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Family:
    """A container of Slipway's.

    Args:
        config: a shipped config, whose plan has every variable that Slipway sets.
        fields: the field of each variable whose name is not the field's.
    """

    name: str
    title: str
    config: str
    fields: Mapping[str, str]


_TENSORRT = Family("tensorrt", "TensorRT", "gpt2-autocomplete", {})
_ENCODER = Family("tensorrt", "TensorRT", "bert-qa-gpu", {"SLIPWAY_MAX_BATCH_SIZE": "batch_size"})
_NEURON = Family(
    "neuron",
    "Neuron",
    "bert-qa-inf2",
    {
        "NEURON_RT_NUM_CORES": "pipeline_cores",
        "SAGEMAKER_MODEL_SERVER_WORKERS": "workers",
        "SLIPWAY_MAX_BATCH_SIZE": "batch_size",
    },
)
_TRITON = Family(
    "triton",
    "Triton",
    "t5-spelling",
    {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "default_model",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "log_verbose",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "shared_memory_bytes",
        "SLIPWAY_INSTANCE_COUNT": "instance_group_count",
    },
)
# No variable of a config in this form: its other name since 0.27, and what is variables already.
_OLDER_NAMES = ("data_type", "env")
_BY_SAGEMAKER = ("SAGEMAKER_BIND_TO_PORT",)
# The field and the meaning of LMI's variables that no field of their own sets.
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


def blocks() -> dict[str, str]:
    project = Project(_ROOT)
    return {
        "slipway": _own_table(ServingSettings.read, [_TENSORRT, _NEURON], project),
        "tensorrt": _own_table(GenerationSettings.read, [_TENSORRT], project),
        "encoders": _own_table(EncoderSettings.read, [_ENCODER], project),
        "neuron": _own_table(NeuronSettings.read, [_NEURON], project),
        "triton": _own_table(TritonSettings.read, [_TRITON], project),
        "lmi": _lmi_table(project),
    }


def _own_table(
    read: Callable[[EnvironmentReader], object], families: Sequence[Family], project: Project
) -> str:
    reader = EnvironmentReader({})
    read(reader)
    planned = {each.name: _planned(each.config, project) for each in families}

    def set_by(variable: str) -> str:
        setters = {_set_by(variable, each, planned[each.name]): each.title for each in families}
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


def _set_by(name: str, family: Family, planned: Mapping[str, str]) -> str:
    """Returns who gives a variable its value on an endpoint of a family."""
    if name in planned:
        field = family.fields.get(name) or name.removeprefix("SLIPWAY_").lower()
        if field not in find(ModelConfig, ("serving", family.name)).sections[0].model_fields:
            raise ValueError(f"no field of `serving` is known to set {name}")
        return f"`serving.{field}`"
    if name in _BY_SAGEMAKER:
        return "SageMaker"
    image = dict(_image_variables(family.name))
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
    known = dict(_LMI_VARIABLES)
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
