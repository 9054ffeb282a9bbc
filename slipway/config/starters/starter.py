"""The part of a first config that each serving family writes its own way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slipway.facts.instances import Accelerator


@dataclass(frozen=True)
class Answers:
    """The answers of the user for a first config.

    Args:
        shape: further fields of the section `model`, as `read_checkpoint` finds them.
        serving: section `serving`, where the checkpoint decides about it.
        latency_milliseconds: objective for the 99th percentile of the answers.
        sample: directory of a small model, relative to the project.
        weights: the section `artifacts.weights`, as `parse_weights` returns it.
        reasons: words above a field, by its path in the file.
        offers: commented lines at the end of the section `serving`.
        own: answers to the questions that only this container asks, by name.
    """

    name: str
    container: str
    family: str
    parameters: int
    instance: str
    latency_milliseconds: int
    shape: Mapping[str, Any] = field(default_factory=dict)
    serving: Mapping[str, Any] = field(default_factory=dict)
    sample: str | None = None
    weights: Mapping[str, str] | None = None
    size_gb: float | None = None
    reasons: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    offers: Sequence[str] = ()
    own: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Starter:
    """A family's first config.

    Args:
        serving: fields of the section `serving`, from the answers and the type's accelerator.
        compile_instance: type that compiles weights, from the answers; None if nothing does.
        endpoint: further fields of the section `endpoint`.
        notes: words above a field, by its name.
        options: options of `slipway init` that no other family reads.
        required: which of them must be answered, from the model's family.
        instead_of_weights: option whose files take the place of weights.
        is_tried_with_a_sample: whether a small model is the usual way to try the family.
        choices: allowed values of an option, where it has a fixed list.
        suits: families of models that the container is proposed for.
        from_architectures: answers that a checkpoint's `architectures` give, by option.
    """

    serving: Callable[[Answers, Accelerator | None], dict[str, Any]]
    compile_instance: Callable[[Answers], str | None] = lambda _: None
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    required: Callable[[str | None], tuple[str, ...]] = lambda _: ()
    instead_of_weights: str | None = None
    is_tried_with_a_sample: bool = False
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    suits: tuple[str, ...] = ()
    from_architectures: Callable[[Sequence[str]], Mapping[str, str]] = lambda _: {}
