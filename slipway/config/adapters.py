"""The config of a LoRA adapter: a file of a few lines over the sections of its base.

`model`, `serving`, `endpoint` and `alarms` are the base's, so that everything that reads a config
reads an adapter's too. What belongs to copies and machines alone is taken out again.
"""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.alarm_kinds import REQUESTS
from slipway.config.document import Document
from slipway.config.schema import ModelConfig
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.rollout import Rollout
from slipway.errors import Kind, Problem

ADAPTER_OF = "adapter_of"
"""The field in which an adapter names its base."""
_OF_THE_BASE = ("model", "serving", "endpoint")
_MODE = "scale_to_zero"


def base_of(document: Document) -> str | None:
    """Returns the model that a file names as its base; None if it names none."""
    base = document.content.get(ADAPTER_OF)
    return base if isinstance(base, str) else None


def over_base(document: Document, base: Document) -> Document:
    """Returns an adapter's document laid over the sections that it takes from its base."""
    for section in (*_OF_THE_BASE, "alarms"):
        positions = {path: place for path, place in base.positions.items() if path[0] == section}
        written = {path: text for path, text in base.written.items() if path[0] == section}
        content = {section: base.content[section]}
        document = document.over(Document(base.path, content, positions, (), written))
    return document


def adapter_problems(document: Document, base: ModelConfig) -> Iterator[Problem]:
    """Yields what no adapter of a base can say; its document has no sections of the base yet."""
    for section in (*_OF_THE_BASE, "autoscaling", "rollout"):
        if section in document.content:
            message = f"an adapter takes `{section}` from its base, {base.name}"
            remedy = f"Remove it here, and set it in {base.name}.yaml."
            yield Problem(Code.ADAPTER_SETTING, Kind.COMPATIBILITY, message, remedy, (section,))
    if base.endpoint.mode != _MODE or base.endpoint.host is not None:
        yield Problem(
            Code.ADAPTER_BASE,
            Kind.COMPATIBILITY,
            f"`{base.name}` is no base: an adapter needs a model with `mode: {_MODE}` and an "
            "endpoint of its own",
            f"Name such a model, or give `{base.name}` that mode.",
            (ADAPTER_OF,),
        )


def as_adapter(config: ModelConfig) -> ModelConfig:
    """Returns an adapter's config: its base is its host, and it has no settings of machines."""
    copies = config.endpoint.copies
    if copies is None:
        raise ValueError(f"{config.name} is no adapter of a component")
    of_machines = [each.field for each in ALARM_KINDS.values() if each.watch.group is not REQUESTS]
    return config.model_copy(
        update={
            "endpoint": config.endpoint.model_copy(
                update={
                    "scale_to_zero": copies.model_copy(update={"endpoint_of": config.adapter_of}),
                    "termination_protection": False,
                }
            ),
            "alarms": config.alarms.model_copy(
                update={**dict.fromkeys(of_machines), "at_max_capacity": False}
            ),
            "autoscaling": None,
            "rollout": Rollout.model_validate({}),
        }
    )
