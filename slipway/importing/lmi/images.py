"""Chooses the image for settings whose image nobody names: the newest that suits them best."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import Kind, UserError, did_you_mean
from slipway.facts.images import versions
from slipway.facts.instances import instance_types
from slipway.facts.lmi.versions import usable_versions
from slipway.importing.draft import FieldName, Guess, KnownFacts
from slipway.importing.lmi.drafts import LmiDraft, lmi_draft
from slipway.importing.lmi.source import LmiSource
from slipway.importing.own_images import own_image

FRAMEWORKS = (
    "djl-lmi", "djl-deepspeed", "djl-fastertransformer", "djl-tensorrtllm", "djl-neuronx",
)  # fmt: skip
"""All frameworks; of several that suit, the first. AWS still develops `djl-lmi`."""

_AWS, _OWN_FAMILY = "/djl-inference:", "lmi"


def suitable_draft(
    source: LmiSource,
    given: KnownFacts,
    guesses: Mapping[FieldName, Guess],
    environment: Environment,
) -> LmiDraft:
    """Makes the config for the image that the user names, or else for the one that suits best.

    The best image refuses least, and reads the most of the settings. Of several such images it is
    the newest. Raises `UserError` without such an image, or if the handler is not among the files.
    """
    best: LmiDraft | None = None
    for framework, version in _candidates(given):
        chosen = replace(given, framework=framework, version=version)
        found = lmi_draft(source, chosen, {**guesses, **_reasons(given)}, environment)
        if best is None or _score(found) < _score(best):
            best = found
    if best is None:
        raise no_such_image(given)
    return best


def image_of(uri: str) -> tuple[str, str] | None:
    """Returns framework and version of an LMI image; None for any other image.

    The tag of an image that Slipway built begins like that of its base, AWS's
    `djl-inference:0.27.0-deepspeed0.12.6-cu121`.
    """
    own = own_image(uri)
    tag = own.tag if own is not None and own.family == _OWN_FAMILY else uri.partition(_AWS)[2]
    found = re.match(r"(\d+\.\d+\.\d+)-([a-z]+)", tag)
    framework = f"djl-{found[2]}" if found else ""
    return (framework, found[1]) if found and framework in FRAMEWORKS else None


def no_such_image(given: KnownFacts) -> UserError:
    if given.framework is not None and given.framework not in FRAMEWORKS:
        hint = did_you_mean(given.framework, FRAMEWORKS)
        return UserError.of(
            Code.UNKNOWN_CHOICE,
            f"there is no framework {given.framework!r}",
            f"{hint}Allowed: {', '.join(FRAMEWORKS)}.",
        )
    among = (given.framework,) if given.framework else FRAMEWORKS
    known = dict.fromkeys(version for each in among for version in versions(each))
    return UserError.of(
        Code.UNKNOWN_IMAGE_VERSION,
        f"there is no image of {given.framework or 'LMI'} {given.version}",
        f"There are {', '.join(known)}.",
        kind=Kind.VALUE,
    )


def _candidates(given: KnownFacts) -> Iterator[tuple[str, str]]:
    instance = instance_types().get(given.instance or "")
    gpu = instance.accelerator if instance else None
    frameworks = [each for each in FRAMEWORKS if given.framework in (None, each)]
    for framework in frameworks:
        if given.version is not None:
            if given.version in versions(framework):
                yield framework, given.version
        else:
            for version in reversed(usable_versions(framework, gpu)):
                yield framework, version


def _reasons(given: KnownFacts) -> dict[FieldName, Guess]:
    found: dict[FieldName, Guess] = {}
    reason = "no setting names it. This is the newest image that suits the settings best."
    if given.framework is None:
        found["serving", "framework"] = Guess(reason)
    if given.version is None:
        found["serving", "version"] = Guess(reason)
    return found


def _score(found: LmiDraft) -> tuple[int, int]:
    draft = found.draft
    return len(found.problems), len(draft.left_out) + len(draft.changed)
