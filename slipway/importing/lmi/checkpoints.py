"""Makes an LMI config of a checkpoint alone: vLLM, with the layout that the network allows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from slipway.config.checkpoint import CheckpointFacts
from slipway.config.environments import Environment
from slipway.facts.instances import instance_types
from slipway.importing.draft import FieldName, Guess, KnownFacts
from slipway.importing.lmi.drafts import LmiDraft, lmi_draft
from slipway.importing.lmi.settings import framework_for, settings_for, version_for
from slipway.importing.lmi.source import LmiSource
from slipway.planning.families.lmi.setup import rendered

_ESTIMATED = ("max_input_tokens", "max_new_tokens")


def checkpoint_draft(
    facts: CheckpointFacts,
    given: KnownFacts,
    guesses: Mapping[FieldName, Guess],
    environment: Environment,
    *,
    origin: str,
) -> LmiDraft:
    """Makes the config of a checkpoint."""
    instance = instance_types().get(given.instance or "")
    accelerator = instance.accelerator if instance else None
    framework = given.framework or framework_for(accelerator)
    version = version_for(facts, accelerator, framework)
    chosen = replace(given, framework=framework, version=given.version or version.value)
    found: dict[FieldName, Guess] = {}
    if given.framework is None:
        found["serving", "framework"] = Guess("AWS still develops it for this accelerator.")
    if given.version is None:
        found["serving", "version"] = Guess(version.reason)
    settings = settings_for(facts, accelerator, framework)
    keys = {
        "option.entryPoint" if path[-1] == "entry_point" else f"option.{path[-1]}": each.value
        for path, each in settings.items()
        if path[-1] not in _ESTIMATED
    }
    source = LmiSource(
        origin=origin, kind=origin, settings={key: rendered(value) for key, value in keys.items()}
    )
    made = lmi_draft(source, chosen, {**guesses, **found}, environment)
    serving: dict[str, Any] = made.draft.content["serving"]
    serving |= {path[0]: each.value for path, each in settings.items() if path[0] in _ESTIMATED}
    more = {
        ("serving", *path): Guess(each.reason)
        for path, each in settings.items()
        if path[0] in serving and path[-1] in (*serving, *serving.get("options", {}))
    }
    return replace(made, draft=replace(made.draft, guesses={**made.draft.guesses, **more}))
