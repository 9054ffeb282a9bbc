"""Makes a whole config of an LMI model's settings.

The rules of planning say which settings an image does not read. Such a setting has no effect at its
source either, so the config lacks it, and it is listed with the rule's words.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.errors import Problem
from slipway.facts.lmi.versions import lmi_version
from slipway.importing.draft import Draft, FieldName, Guess, KnownFacts, Setting, alarms_of
from slipway.importing.lmi.serving import (
    LONGEST_START_SECONDS,
    ServingDraft,
    script_directory,
    serving_draft,
)
from slipway.importing.lmi.source import REVISION_KEY, SCRIPT_FILE, WEIGHTS_KEYS, LmiSource
from slipway.planning.families import deployment_of
from slipway.planning.families.lmi import FAMILY
from slipway.planning.families.lmi.deployment import Lmi

# Settings without an effect.
_UNREAD = (
    Code.LMI_OPTION_UNKNOWN,
    Code.LMI_OPTION_UNREAD,
    Code.LMI_SETTING_UNREAD,
    Code.LMI_STREAMING,
)
_VARIABLES = "environment"
_ROLLING_FIELDS = ("rolling_batch", "max_rolling_batch_size")
_DEFAULT_START_SECONDS = 1800
# The server's defaults that Slipway writes too.
_SAME_AS_WITHOUT: Mapping[str, str] = {
    "job_queue_size": "1000",
    "max_batch_delay": "100",
    "option.trust_remote_code": "false",
}
# Slipway does not write these.
_DEFAULTS: Mapping[str, str] = {
    "batch_size": "1",
    "max_dynamic_batch_size": "1",
    "option.pipeline_parallel_degree": "1",
    "option.trust_remote_code": "false",
}
_PLACE_OF_WEIGHTS = "s3://BUCKET/"


@dataclass(frozen=True)
class LmiDraft:
    """A draft for one image, and what the rules of the family refuse.

    Args:
        rendered: keys and values of the serving.properties that Slipway makes of the config; empty
            where a rule refuses it.
        added: the keys that the source lacks, without the server's own defaults.
    """

    draft: Draft
    problems: tuple[Problem, ...]
    rendered: Mapping[str, str]
    added: Mapping[str, str]


def lmi_draft(
    source: LmiSource,
    given: KnownFacts,
    guesses: Mapping[FieldName, Guess],
    environment: Environment,
) -> LmiDraft:
    """Makes the config for one image; raises `UserError` if the handler is not among the files."""
    framework, version = given.framework or "", given.version or ""
    serving = serving_draft(source, given.name, framework, version)
    content, more = _content(source, given, serving)
    while True:
        lmi = _deployment(content, environment)
        problems = tuple(FAMILY.problems(lmi)) if lmi is not None else ()
        adapted = [_is_adapted(source, serving, each) for each in problems]
        if not any(adapted):
            break
    for name in ("options", _VARIABLES):
        if not serving.section.get(name, True):
            del serving.section[name]
    files = {
        f"{script_directory(given.name)}/{_name_of(path, source)}": data
        for path, data in source.files.items()
        if serving.copies_files
    }
    draft = Draft(
        content=content,
        guesses={
            path: guess
            for path, guess in {**guesses, **more, **serving.guesses}.items()
            if _is_there(content, path)
        },
        changed=tuple(serving.changed),
        left_out=tuple(serving.left_out),
        files=files,
    )
    rendered = {} if lmi is None or problems else lmi.properties(_PLACE_OF_WEIGHTS)
    if rendered:
        draft = replace(draft, left_out=(*draft.left_out, *_unsaid(draft, rendered, source, given)))
    return LmiDraft(draft, problems, rendered, _added(rendered, source))


def _content(
    source: LmiSource, given: KnownFacts, serving: ServingDraft
) -> tuple[dict[str, Any], dict[FieldName, Guess]]:
    alarms, guesses = alarms_of(given, source.kind)
    start = serving.section.get("model_loading_timeout_seconds")
    endpoint: dict[str, Any] = {
        "instances": [given.instance],
        "container_startup_health_check_timeout_seconds": _DEFAULT_START_SECONDS,
        "network_isolation": False,
    }
    reason = f"{source.kind} does not say it. The weights are copied and loaded within it."
    if isinstance(start, int) and start <= LONGEST_START_SECONDS:
        endpoint["container_startup_health_check_timeout_seconds"] = max(60, start)
        reason = "the time that the server gives the model to load."
    guesses["endpoint", "container_startup_health_check_timeout_seconds"] = Guess(reason)
    guesses["endpoint", "network_isolation"] = Guess(
        "the container copies the weights from S3 itself, which needs a network."
    )
    for name in given.endpoint:
        guesses.pop(("endpoint", name), None)
    endpoint |= given.endpoint
    content = given.content(serving.section, alarms, artifacts=given.artifacts, endpoint=endpoint)
    return content, guesses


def _deployment(content: Mapping[str, Any], environment: Environment) -> Lmi | None:
    """Returns the deployment of a valid config; None where the loader will report problems."""
    try:
        config = ModelConfig.model_validate(content)
    except ValidationError:
        return None
    deployment = deployment_of(config, environment)
    if not isinstance(deployment, Lmi):
        raise TypeError(f"{config.name} is served by the container {deployment.container}")
    return deployment


def _is_adapted(source: LmiSource, serving: ServingDraft, problem: Problem) -> bool:
    """Removes a setting without an effect, and lists it; returns whether anything changed."""
    if problem.field == ("serving", "max_batch_size") and problem.code == Code.LMI_ROLLING_BATCH:
        names = [name for name in _ROLLING_FIELDS if name in serving.section]
        paths: list[tuple[str, ...]] = [("serving", name) for name in names]
        reason = f"{problem.message}."
    elif problem.code in _UNREAD:
        paths = [tuple(str(part) for part in problem.field)]
        reason = f"{problem.message}. {problem.remedy}"
    elif problem.code == Code.LMI_ROLLING_BATCH and _reads_no_rolling_batch(serving):
        paths, reason = [("serving", "rolling_batch")], f"{problem.message}."
    else:
        return False
    adapted = False
    for path in paths:
        section: dict[str, Any] = serving.section
        for name in path[1:-1]:
            section = section[name]
        if path[1] == _VARIABLES and path[-1] in section:
            unread = Setting(path[-1], section.pop(path[-1]), reason)
        elif path[-1] in section and (key := serving.keys.pop(path, None)) is not None:
            del section[path[-1]]
            unread = Setting(source.name_of(key), source.settings[key], reason)
        else:
            continue
        serving.left_out.append(unread)
        adapted = True
    return adapted


def _reads_no_rolling_batch(serving: ServingDraft) -> bool:
    """Whether no handler of the image has the option, so that the server passes over it."""
    version = lmi_version(serving.section["framework"], serving.section["version"])
    return all("rolling_batch" not in version.options_for(name) for name in version.handlers)


def _added(rendered: Mapping[str, str], source: LmiSource) -> dict[str, str]:
    return {
        key: value
        for key, value in rendered.items()
        if key not in (*source.settings, *WEIGHTS_KEYS, "engine")
        and _SAME_AS_WITHOUT.get(key) != value
    }


def _unsaid(
    draft: Draft, rendered: Mapping[str, str], source: LmiSource, given: KnownFacts
) -> Iterator[Setting]:
    """Yields the settings that neither Slipway's file has nor a list of the draft."""
    listed = {setting.name for setting in (*draft.left_out, *draft.changed)}
    named = next((key for key in WEIGHTS_KEYS if source.settings.get(key)), "")
    elsewhere = {named, "engine", "option.entryPoint"}
    if (given.weights or {}).get("source") == "hub":
        elsewhere.add(REVISION_KEY)
    for key, value in source.settings.items():
        is_batch = key == "max_dynamic_batch_size" and "batch_size" in rendered
        if key in rendered or key in elsewhere or source.name_of(key) in listed or is_batch:
            continue
        if key in WEIGHTS_KEYS:
            reason = f"`{named}` names the weights." if named else "it names nothing."
            yield Setting(source.name_of(key), value, reason)
            continue
        reason = "Slipway writes no such line, because the server does the same without it."
        if _DEFAULTS.get(key) != value.strip().lower():
            reason = "Slipway writes no such line. See whether the model needs it."
        yield Setting(source.name_of(key), value, reason)


def _is_there(content: Mapping[str, Any], path: FieldName) -> bool:
    section: Any = content
    for name in path:
        if not isinstance(section, Mapping) or name not in section:
            return False
        section = section[name]
    return True


def _name_of(path: str, source: LmiSource) -> str:
    """Returns the name of a file in the package: a handler of another name becomes model.py."""
    entry_point = source.settings.get("option.entryPoint", "").strip().removeprefix("./")
    return SCRIPT_FILE if path == entry_point else path
