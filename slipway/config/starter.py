"""A first model config: valid, with the schema's own words above every field.

Some values are answers of the user. All others are defaults that suit the container family and the
instance type. The rules check whether they go together.
"""

from collections.abc import Callable, Mapping
from typing import Any

from slipway.codes.code import Code
from slipway.config.editor_schema import FIRST_LINE
from slipway.config.fields import find, tag_of
from slipway.config.schema import ModelConfig
from slipway.config.starters import STARTERS
from slipway.config.starters.starter import Answers, Starter
from slipway.config.yaml_text import lines
from slipway.errors import UserError
from slipway.facts.instances import instance_types

# At the least speed of a copy from S3 that plans count with. Half an hour is LMI's usual limit.
_COPIED_IN_HALF_AN_HOUR_GB = 150
_LONGEST_START_SECONDS = 3600


def parse_weights(text: str) -> dict[str, str]:
    """Parses `hub:OWNER/NAME@REVISION`, `s3://BUCKET/PREFIX/` or a directory's path.

    Raises `UserError` for a repository of the Hub without a commit.
    """
    if text.startswith("s3://"):
        return {"source": "s3", "uri": text}
    if not text.startswith("hub:"):
        return {"source": "path", "path": text}
    repository, _, revision = text.removeprefix("hub:").partition("@")
    if not repository or not revision:
        raise UserError.of(
            Code.NO_COMMIT,
            f"`--weights {text}` names no commit",
            "Write `hub:OWNER/NAME@REVISION` with all 40 digits of the commit: a branch could "
            "change under you.",
        )
    return {"source": "hub", "repository": repository, "revision": revision}


def render(answers: Answers) -> str:
    content = first_content(answers)
    comments = _comments(content, STARTERS[answers.container].notes, answers.reasons)
    found = list(lines(content, comments))
    end = found.index("", found.index("serving:"))
    found[end:end] = answers.offers
    return "\n".join([FIRST_LINE, *found]) + "\n"


def first_content(answers: Answers) -> dict[str, Any]:
    facts = instance_types().get(answers.instance)
    starter = STARTERS[answers.container]
    serving = starter.serving(answers, facts.accelerator if facts else None)
    return {
        "name": answers.name,
        "description": "",
        "model": {
            "family": answers.family,
            "parameters": answers.parameters,
            **answers.shape,
        },
        "serving": {"container": answers.container, **serving},
        **_artifacts(answers, starter),
        "endpoint": _endpoint(answers, starter),
        "autoscaling": {
            "min_instance_count": 1,
            "max_instance_count": 2,
            "target_concurrent_requests_per_instance": _concurrent_requests(serving),
        },
        "alarms": {"model_latency_p99_milliseconds": answers.latency_milliseconds},
    }


def _concurrent_requests(serving: Mapping[str, Any]) -> int:
    """Returns the number of requests per instance that autoscaling aims at: one batch."""
    for name in ("max_rolling_batch_size", "max_batch_size", "batch_size"):
        if name in serving:
            return int(serving[name])
    return 4


def _artifacts(answers: Answers, starter: Starter) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if answers.sample is not None:
        found["sample"] = {"path": answers.sample}
    if answers.weights is not None:
        found["weights"] = dict(answers.weights)
        compiles_on = starter.compile_instance(answers)
        if compiles_on is not None:
            found["compile"] = {"instance": compiles_on}
    if answers.size_gb is not None:
        found["size_gb"] = answers.size_gb
    return {"artifacts": found} if found else {}


def _endpoint(answers: Answers, starter: Starter) -> dict[str, Any]:
    found = {
        "instances": [answers.instance],
        "instance_count": 1,
        "model_data_download_timeout_seconds": 600,
        "container_startup_health_check_timeout_seconds": 600,
        **starter.endpoint,
    }
    if (answers.size_gb or 0) > _COPIED_IN_HALF_AN_HOUR_GB:
        found["container_startup_health_check_timeout_seconds"] = _LONGEST_START_SECONDS
    return found


def _comments(
    content: Mapping[str, Any],
    notes: Mapping[str, str],
    reasons: Mapping[tuple[str, ...], str],
) -> Callable[[tuple[str, ...]], str]:
    """Returns the words above a field: the schema's own, and further words.

    `container` and `source` in the content choose among the schema's sections. `notes` are by the
    name of the field, and `reasons` by its path.
    """

    def comment(path: tuple[str, ...]) -> str:
        place = find(ModelConfig, _tagged(content, path))
        text = place.info.description if place.info else None
        if not text and place.sections:
            text = (place.sections[0].__doc__ or "").strip().splitlines()[0]
        further = (notes.get(path[-1]), reasons.get(path))
        return " ".join(filter(None, (text, *further)))

    return comment


def _tagged(content: Mapping[str, Any], path: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the validator's path to a field, with the tag of each union after its field."""
    found: tuple[str, ...] = ()
    section: Any = content
    for name in path[:-1]:
        found, section = (*found, name), section[name]
        sections = find(ModelConfig, found).sections
        if len(sections) > 1:
            tags = (tag_of(each) for each in sections)
            found += tuple(tag for tag in tags if tag and tag in section.values())
    return (*found, *path[-1:])
