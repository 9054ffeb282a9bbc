"""Checks of ensembles: the models that they name, and the tensors that flow between them.

Sources of the limits: ValidateEnsembleSchedulingConfig (src/model_config_utils.cc) and
src/ensemble_scheduler/ensemble_utils.cc in triton-inference-server/core.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from slipway.planning.families.triton.repository.config_file import one_of
from slipway.planning.families.triton.repository.model import Fault, Model
from slipway.planning.families.triton.repository.text_format import Message, Position

_LATEST = -1


@dataclass(frozen=True)
class _Use:
    """An entry of a step's map: the model's tensor, the ensemble's, and the place."""

    inner: str
    outer: str
    position: Position


@dataclass(frozen=True)
class _Step:
    name: str
    message: Message
    inputs: list[_Use]
    outputs: list[_Use]


def ensemble_faults(ensemble: Model, models: Mapping[str, Model]) -> Iterator[Fault]:
    """Yields what prevents an ensemble from being loaded; another model has no such problems.

    The models of the repository are there as far as they could be read.
    """
    for scheduling in ensemble.config.messages("ensemble_scheduling"):
        steps = [_step(message) for message in scheduling.messages("step")]
        if not steps and not scheduling.left_out:
            yield scheduling.position, "the ensemble has no `step`", "Add the first one."
        for step in steps:
            yield from _whole(step)
            yield from _model(ensemble, step, models)
        if any(step.message.left_out for step in steps):
            # What flows is not known.
            continue
        yield from _flow(ensemble, scheduling, steps)
        yield from _types(ensemble, steps, models)


def reached(name: str, models: Mapping[str, Model]) -> set[str]:
    """Returns the models that Triton loads with a model, which is one of them."""
    found, waiting = {name}, [name]
    while waiting:
        current = models.get(waiting.pop())
        steps = current.config.messages("ensemble_scheduling", "step") if current else ()
        new = {step.text("model_name") for step in steps} - found
        found |= new
        waiting += new
    return found


def _step(message: Message) -> _Step:
    inputs, outputs = (
        [_Use(key, entry.text("value"), entry.position) for key, entry in message.entries(name)]
        for name in ("input_map", "output_map")
    )
    return _Step(message.text("model_name"), message, inputs, outputs)


def _whole(step: _Step) -> Iterator[Fault]:
    for field in ("model_name", "input_map", "output_map"):
        if step.message.one(field) is None and not step.message.left_out:
            yield step.message.position, f"a step has no `{field}`", "Add it to the step."


def _model(ensemble: Model, step: _Step, models: Mapping[str, Model]) -> Iterator[Fault]:
    if not step.name:
        return
    at = step.message.scalars("model_name")[0].position
    if step.name not in models:
        yield (
            at,
            f"a step calls the model `{step.name}`, which the repository does not have",
            one_of(step.name, sorted(models)),
        )
        return
    model = models[step.name]
    if ensemble.name in reached(step.name, models):
        yield (
            at,
            f"the model `{step.name}` leads back to `{ensemble.name}`",
            "Remove the step: an ensemble cannot call itself.",
        )
        return
    version = step.message.integer("model_version")
    if version not in (None, _LATEST) and version not in model.served_versions:
        yield (
            step.message.scalars("model_version")[0].position,
            f"a step calls version {version} of `{step.name}`, which is not served",
            f"Use -1 for the latest one. {step.name} serves: "
            f"{', '.join(map(str, model.served_versions)) or 'none'}.",
        )
    size, own_size = (each.config.integer("max_batch_size") for each in (ensemble, model))
    if size and own_size is not None and 0 <= own_size < size:
        yield (
            ensemble.config.scalars("max_batch_size")[0].position,
            f"`max_batch_size` is {size}, and that of `{step.name}` is {own_size}",
            f"Set it to at most {own_size}.",
        )
    yield from _names(step.inputs, model, "input")
    yield from _names(step.outputs, model, "output")
    mapped, tensors = {use.inner for use in step.inputs}, model.tensors("input")
    for name, tensor in tensors.items():
        # A name that the model does not have may be meant for this one, and is a problem already.
        is_mapped = not mapped <= set(tensors) or not mapped or name in mapped
        if name and not is_mapped and not tensor.flag("optional"):
            yield (
                step.message.position,
                f"`input_map` leaves out the input `{name}` of `{step.name}`",
                f'Add `input_map {{ key: "{name}" value: "..." }}`.',
            )


def _names(uses: list[_Use], model: Model, direction: str) -> Iterator[Fault]:
    tensors = model.tensors(direction)
    # Triton may read them from the model itself.
    if not tensors and model.completes_itself:
        return
    for use in uses:
        if use.inner not in tensors:
            yield (
                use.position,
                f"`{direction}_map` names the {direction} `{use.inner}`, which `{model.name}` "
                "does not have",
                one_of(use.inner, tensors, "It has"),
            )


def _flow(ensemble: Model, scheduling: Message, steps: list[_Step]) -> Iterator[Fault]:
    """Yields tensors that nothing produces, that two produce, or that nothing takes."""
    inputs, outputs = ensemble.tensors("input"), ensemble.tensors("output")
    taken = {use.outer for step in steps for use in step.inputs}
    produced: dict[str, str] = dict.fromkeys(inputs, "the request")
    for step in steps:
        for use in step.outputs:
            if use.outer in produced:
                yield (
                    use.position,
                    f"the tensor `{use.outer}` of `{step.name}` comes from "
                    f"{produced[use.outer]} already",
                    "Give it another name.",
                )
            produced.setdefault(use.outer, f"`{step.name}`")
            if use.outer not in taken and use.outer not in outputs:
                message = f"nothing takes the tensor `{use.outer}` of `{step.name}`"
                remedy = "Leave it out of `output_map`, or make it an `output` of the ensemble."
                yield use.position, message, remedy
    for step in steps:
        for use in step.inputs:
            if use.outer not in produced:
                message = f"nothing produces the tensor `{use.outer}`, which `{step.name}` takes"
                yield use.position, message, one_of(use.outer, produced)
    for name, tensor in inputs.items():
        if name and name not in taken:
            message = f"no step takes the input `{name}`"
            yield tensor.position, message, "Map it in a step, or remove it."
    for name, tensor in outputs.items():
        if name and (name not in produced or name in inputs):
            message = f"no step produces the output `{name}`"
            yield tensor.position, message, "Map it in `output_map` of a step, or remove it."
    yield from _circles(scheduling, steps, inputs)


def _circles(
    scheduling: Message, steps: list[_Step], inputs: Mapping[str, Message]
) -> Iterator[Fault]:
    """Yields the steps that wait for each other; what no step produces is a problem already."""
    produced = {use.outer for step in steps for use in step.outputs}
    ready = {*inputs, *({use.outer for step in steps for use in step.inputs} - produced)}
    waiting = list(steps)
    while runnable := [s for s in waiting if all(use.outer in ready for use in s.inputs)]:
        ready.update(use.outer for step in runnable for use in step.outputs)
        waiting = [step for step in waiting if step not in runnable]
    if waiting:
        message = f"the steps {', '.join(f'`{step.name}`' for step in waiting)} wait for each other"
        remedy = "Break the circle: a step needs tensors of the request or of other steps."
        yield scheduling.position, message, remedy


def _types(ensemble: Model, steps: list[_Step], models: Mapping[str, Model]) -> Iterator[Fault]:
    """Yields tensors whose data type is another at the other end."""
    types = {
        name: (tensor.text("data_type"), f"the ensemble's {direction}")
        for direction in ("input", "output")
        for name, tensor in ensemble.tensors(direction).items()
        if tensor.text("data_type")
    }
    for step in steps:
        if step.name not in models:
            continue
        for direction, uses in (("output", step.outputs), ("input", step.inputs)):
            tensors = models[step.name].tensors(direction)
            for use in uses:
                found = tensors[use.inner].text("data_type") if use.inner in tensors else ""
                if not found:
                    continue
                known, origin = types.setdefault(
                    use.outer, (found, f"an {direction} of `{step.name}`")
                )
                if known != found:
                    yield (
                        use.position,
                        f"the tensor `{use.outer}` is {found} in `{step.name}` and {known} as "
                        f"{origin}",
                        "Use the same data type at both ends.",
                    )
