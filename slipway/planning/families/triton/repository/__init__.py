"""Checks a Triton model repository of the user's own before it is published.

Triton reports one problem a start, in the log of a container. Here every problem is reported at
once, with its place. AWS's image adds conditions of its own (docker/sagemaker/serve and
src/sagemaker_server.cc of triton-inference-server/server). It counts directories, and loads the
default model alone. Its /invocations answers 501 for a model with several answers.

Triton could do without some config.pbtxt files. Slipway demands each, because a reviewer otherwise
does not see the inputs and limits of a model.
"""

import re
from collections.abc import Iterator, Mapping

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem
from slipway.planning.directory import Directory, DirectoryFindings
from slipway.planning.families.triton.repository import files as file_rules
from slipway.planning.families.triton.repository import models as model_rules
from slipway.planning.families.triton.repository.config_file import NAME, one_of, read_config
from slipway.planning.families.triton.repository.ensembles import ensemble_faults, reached
from slipway.planning.families.triton.repository.model import VERSION, Fault, Model
from slipway.planning.families.triton.repository.text_format import Message
from slipway.planning.partial import rules_of
from slipway.planning.plan import PlanWarning

CONFIG_NAME = NAME
"""Files of this name are read; of all others, only names and sizes count."""

# A name that was meant as a version: Triton ignores the directory without a word.
_LIKE_A_VERSION = re.compile(r"(?i)[v.-]?[0-9][0-9._-]*")
_ARGUMENTS = "SAGEMAKER_TRITON_ADDITIONAL_ARGS"


def check_repository(
    directory: Directory,
    *,
    default_model: str | None,
    release: str,
    variables: Mapping[str, str],
    without_gpu: str | None = None,
) -> DirectoryFindings:
    """Returns every problem of a model repository, and what a reviewer may want to know.

    Args:
        directory: the repository.
        default_model: the model that answers /invocations; None if there is only one.
        release: of AWS's image, `YY.MM`.
        variables: variables of the container that the config sets.
        without_gpu: an instance type of the endpoint that has no GPU; None if all have.
    """
    names = sorted(
        {path.partition("/")[0] for path in directory.sizes_bytes if "/" in path}
        | {path.partition("/")[0] for path in directory.empty}
    )
    problems = list(_layout(directory, names, default_model))
    models: dict[str, Model] = {}
    unread = set[str]()
    for name in names:
        prefix = f"{name}/"
        files = [
            path.removeprefix(prefix) for path in directory.sizes_bytes if path.startswith(prefix)
        ]
        if NAME not in files:
            continue
        file, config, found = read_config(directory, prefix + NAME, release)
        problems += found
        if config is None:
            unread.add(name)
            continue
        empty = {path for path in files if not directory.sizes_bytes[prefix + path]}
        pointers = {path for path in files if prefix + path in directory.pointers}
        models[name] = model = Model(name, file, config, files, empty, pointers)
        problems += _versions(directory, model)
        for code, module in ((Code.TRITON_MODEL, model_rules), (Code.TRITON_LAYOUT, file_rules)):
            told = (fault for rule in rules_of(module) for fault in rule(model))
            problems += (file.problem(code, *fault) for fault in told)
    if not unread:
        # Otherwise a model that cannot be read would also be a model that is not there.
        for model in models.values():
            problems += (
                model.file.problem(Code.TRITON_ENSEMBLE, *fault)
                for fault in ensemble_faults(model, models)
            )
    answering = default_model or (names[0] if len(names) == 1 else None)
    loaded = sorted(reached(answering, models) & set(models)) if answering in models else []
    for name in loaded:
        faults = [*_decoupled(models[name], variables), *_on_gpu(models[name], without_gpu)]
        problems += (models[name].file.problem(Code.TRITON_MODEL, *fault) for fault in faults)
    warnings = [*_cached(models), *_bounded_queues(models)]
    if answering in models and not unread:
        warnings += _unloaded(models, answering, variables)
    problems.sort(key=lambda problem: problem.location or Location(""))
    needed = {model.backend_name for model in models.values() if not model.brings_backend}
    return DirectoryFindings(problems, warnings, sorted(needed - {""}))


def _problem(directory: Directory, message: str, remedy: str) -> Problem:
    return Problem(Code.TRITON_LAYOUT, Kind.VALUE, message, remedy, directory.field)


def _layout(directory: Directory, names: list[str], default_model: str | None) -> Iterator[Problem]:
    if NAME in directory.sizes_bytes:
        yield _problem(
            directory,
            f"{directory.path} has a {NAME} beside the models: AWS's image does not start with it",
            f"Move the model's files into a directory of its name: {directory.path}/MODEL/{NAME}.",
        )
    if not names:
        yield _problem(
            directory,
            f"{directory.path} has no model",
            f"Put each model into a directory of its name: MODEL/{NAME} and MODEL/1/.",
        )
    for name in names:
        if f"{name}/{NAME}" not in directory.sizes_bytes:
            yield _problem(
                directory,
                f"{directory.path}/{name} has no {NAME}",
                "Add the file, or move the directory out of the repository.",
            )
    if default_model is None and len(names) > 1:
        yield Problem(
            Code.TRITON_REPOSITORY,
            Kind.VALUE,
            f"{directory.path} has {len(names)} directories, and no `default_model` says which "
            "answers",
            f"Add `serving.default_model`, one of: {', '.join(names)}.",
            directory.field,
        )
    elif default_model is not None and names and default_model not in names:
        yield Problem(
            Code.TRITON_REPOSITORY,
            Kind.VALUE,
            f"`default_model` is `{default_model}`, and {directory.path} has no such directory",
            one_of(default_model, names),
            ("serving", "default_model"),
        )


def _versions(directory: Directory, model: Model) -> Iterator[Problem]:
    where = f"{directory.path}/{model.name}"
    folders = {path.partition("/")[0] for path in model.files if "/" in path}
    parts = (path.split("/") for path in directory.empty)
    empty = {part[1] for part in parts if part[0] == model.name and len(part) > 1} - folders
    unusable = [
        folder
        for folder in sorted(folders | empty)
        if _LIKE_A_VERSION.fullmatch(folder) and not VERSION.fullmatch(folder)
    ]
    for folder in unusable:
        yield _problem(
            directory,
            f"{where}/{folder} is no version: Triton ignores the directory",
            "Rename it: a version is a number from 1, without zeros in front.",
        )
    for folder in filter(VERSION.fullmatch, sorted(empty)):
        yield _problem(
            directory,
            f"{where}/{folder} has no file, and S3 keeps no empty directory",
            f"Add a file to it, for example {folder}/README.md.",
        )
    if not model.versions and not unusable and not any(map(VERSION.fullmatch, empty)):
        yield _problem(
            directory,
            f"{where} has no version directory",
            "Add the directory `1` with the model's files. An ensemble needs a file there too, for "
            "example 1/README.md.",
        )


def _decoupled(model: Model, variables: Mapping[str, str]) -> Iterator[Fault]:
    """Yields that a model has several answers to a request, which /invocations refuses."""
    if variables.get("SAGEMAKER_TRITON_INFERENCE_TYPE") == "generate_stream":
        return
    for policy in model.config.messages("model_transaction_policy"):
        if policy.flag("decoupled"):
            yield (
                policy.position,
                "a decoupled model gives any number of answers, and /invocations of SageMaker "
                "answers 501 for it",
                "Remove `decoupled`, or set `default_model` to a model that calls this one and "
                "gives one answer.",
            )


def _on_gpu(model: Model, instance: str | None) -> Iterator[Fault]:
    """Yields the backend and groups that would not start on an instance type without a GPU."""
    if instance is None:
        return
    if model.backend_name == "tensorrt":
        message = f"the backend `tensorrt` needs a GPU, and {instance} has none"
        remedy = "Choose an instance type with an NVIDIA GPU, or serve a graph of `onnxruntime`."
        yield model.backend_position, message, remedy
    for group in model.config.messages("instance_group"):
        if group.text("kind") == "KIND_GPU":
            message = f"an instance group needs a GPU, and {instance} has none"
            remedy = "Set `kind: KIND_CPU`, or leave `kind` out: Triton then takes what is there."
            yield group.scalars("kind")[0].position, message, remedy


def _cached(models: Mapping[str, Model]) -> Iterator[PlanWarning]:
    names = [
        name
        for name, model in models.items()
        if any(cache.flag("enable") for cache in model.config.messages("response_cache"))
    ]
    if names:
        yield PlanWarning(
            "triton-response-cache",
            f"{', '.join(names)} has `response_cache`. AWS's image starts without a cache, unless "
            f"`--cache-config` is in {_ARGUMENTS}.",
        )


def _bounded_queues(models: Mapping[str, Model]) -> Iterator[PlanWarning]:
    """Warns of queues for which Triton waits in `WaitForPayloadSlotAvailable`."""
    names = [
        name
        for name, model in models.items()
        for batching in model.config.messages("dynamic_batching")
        if batching.integer("priority_levels")
        or any(map(_is_bounded, batching.messages("default_queue_policy")))
    ]
    if names:
        yield PlanWarning(
            "triton-queue-policy",
            f"{', '.join(names)} has a queue policy or priorities. With them, a request can wait "
            "for half a second beside an idle copy of the model. Remove them if you can.",
        )


def _is_bounded(policy: Message) -> bool:
    return bool(
        policy.integer("max_queue_size")
        or policy.integer("default_timeout_microseconds")
        or policy.flag("allow_timeout_override")
    )


def _unloaded(
    models: Mapping[str, Model], answering: str, variables: Mapping[str, str]
) -> Iterator[PlanWarning]:
    """Warns of models that are published and not loaded: the image loads what it is told."""
    told = variables.get(_ARGUMENTS, "")
    left = [
        name
        for name in sorted(set(models) - reached(answering, models))
        if f"--load-model={name}" not in told.split()
    ]
    if left:
        arguments = " ".join(f"--load-model={name}" for name in left)
        yield PlanWarning(
            "triton-unloaded-models",
            f"AWS's image loads `{answering}` and the models of its steps, and not "
            f"{', '.join(f'`{name}`' for name in left)}. If a model calls them itself, set "
            f"{_ARGUMENTS} in `environment`: {arguments}",
        )
