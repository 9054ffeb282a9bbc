"""Public serving.properties import and plan; the rest is refused with a reason of its version."""

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.errors import UserError
from slipway.importing.draft import KnownFacts
from tests.importing.drafts import WEIGHTS, imported, require_plan

FACTS: dict[str, Any] = json.loads(
    Path(__file__).with_name("public_properties.json").read_text("utf-8")
)
FILES: list[dict[str, Any]] = FACTS["files"]
ACCEPTED = [file for file in FILES if "refused" not in file]
REFUSED = [file for file in FILES if "refused" in file]
# Said by fields of the config, by `artifacts.weights`, or by the engine.
_ELSEWHERE = {"option.model_id", "option.s3url", "option.revision", "option.entryPoint"}


def given(file: dict[str, Any]) -> KnownFacts:
    return KnownFacts(
        "public",
        instance=file["instance"],
        framework=file.get("framework"),
        version=file.get("version"),
        family=file["family"],
        parameters=file["parameters"],
        weights=WEIGHTS,
        size_gb=file.get("size_gb"),
    )


def files(file: dict[str, Any]) -> dict[str, bytes]:
    """Returns stand-ins for the files beside it: only whether they have a handler counts."""
    content = b"def handle(inputs): ..."
    if file.get("model_py") == "formatters":
        content = b"@input_formatter\ndef custom(inputs): ..."
    return dict.fromkeys(file.get("files", ()), content)


def name(file: dict[str, Any]) -> str:
    return f"{file['repository']}/{file['path'].strip()}"


def test_there_are_at_least_sixty_distinct_files_and_nine_of_ten_are_accepted():
    distinct = {json.dumps(file["properties"], sort_keys=True) for file in FILES}
    assert len(distinct) == len(FILES) >= 60
    assert len(ACCEPTED) >= 0.9 * len(FILES)
    assert len({file["repository"] for file in FILES}) >= 6


@pytest.mark.parametrize("file", ACCEPTED, ids=name)
def test_a_public_file_plans_and_loses_no_setting(file):
    made = imported(file["properties"], given(file), **files(file))
    require_plan(made)
    listed = {setting.name for setting in (*made.draft.left_out, *made.draft.changed)}
    rendered = made.rendered
    for key, value in file["properties"].items():
        if key in listed or key in _ELSEWHERE:
            continue
        if value == "max":
            assert rendered[key].isdigit()
        else:
            assert rendered[key].lower() == value.lower(), key


@pytest.mark.parametrize("file", REFUSED, ids=name)
def test_the_rest_is_refused_for_the_reason_in_its_source(file):
    assert file["refused"]["source"]
    with pytest.raises(UserError) as refused:
        require_plan(imported(file["properties"], given(file), **files(file)))
    assert [problem.code for problem in refused.value.problems] == file["refused"]["codes"]
