"""Endpoints that Slipway deployed, imported from their live state."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.identity import ACCESS_KEY_ID
from slipway.planning.plan_json import plan_as_json
from slipway.project import Project
from tests.support.accounts import SECRET_ACCESS_KEY
from tests.support.golden_cases import without_unset
from tests.support.plans import plan_for
from tests.support.projects import LOCAL, lock_for, write_project
from tests.support.stacks import Stacks

NOT_TOLD: Mapping[str, str] = {
    "artifact": "the address of the files is told, and copied by the printed command; size and "
    "number of the files come from publishing",
    "memory": "no answer tells the network's size and precision; both are given as options",
}
"""Fields of a plan that neither a Describe call nor an artifact tells, each with the reason."""

SECTIONS_NOT_TOLD: Mapping[str, str] = {
    "description": "a sentence for people, which only the template of the stack has",
    "model": "both the network's size and its precision are given as options",
    "serving": "the plan has the image and the variables of the container",
    "artifacts": "the plan has the address of the files",
}
"""Sections of the config that no Describe call tells, each with the reason."""

ENDPOINT_NOT_TOLD: Mapping[str, str] = {
    "termination_protection": "CloudFormation tells it of the stack, and not of the endpoint",
    "instances": "the plan has the types of each variant",
    "instance_count": "the plan has the number of each variant",
    "model_data_download_timeout_seconds": "the plan has it for each variant",
    "container_startup_health_check_timeout_seconds": "the plan has it for each variant",
    "inference_ami_version": "the plan has it for each variant",
}
"""Fields of `endpoint` that no Describe call tells, or that the plan tells elsewhere."""

QUEUE_NOT_TOLD: Mapping[str, str] = {
    "input": "only the rights of the execution role have it, and these may be wider",
    "input_key_arn": "a right of the execution role",
    "topic_key_arn": "a setting of the topic",
}
"""Fields of a plan's queue that no Describe call tells, each with the reason."""


COPIES_NOT_TOLD: Mapping[str, str] = {
    "accelerators_per_copy": "the plan has the number of each copy",
    "vcpus_per_copy": "the plan has the number of each copy",
}
"""Fields of `endpoint.scale_to_zero` that the plan tells elsewhere, each with the reason."""

COMPONENT_NOT_TOLD: Mapping[str, str] = {
    "rollout": "the component tells the rollout of its last update, and a new one had none",
}
"""Fields of the plan of an inference component that no Describe call tells until an update."""


def told(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a plan that an endpoint tells."""
    rollout = COMPONENT_NOT_TOLD if "component" in plan else {}
    found = _without(plan, {**NOT_TOLD, **rollout})
    if rollout and "rollout" in plan:
        # The right to read the alarms of a rollout that is not told.
        counted = Counter(plan["resources"]) - Counter({"AWS::IAM::Policy": 1})
        found["resources"] = dict(counted)
    config = _without(found["config"], {**SECTIONS_NOT_TOLD, **rollout})
    endpoint = _without(config["endpoint"], ENDPOINT_NOT_TOLD)
    if "async_inference" in endpoint:
        endpoint["async_inference"] = _without(endpoint["async_inference"], QUEUE_NOT_TOLD)
    if "scale_to_zero" in endpoint:
        endpoint["scale_to_zero"] = _without(endpoint["scale_to_zero"], COPIES_NOT_TOLD)
    return {**found, "config": {**config, "endpoint": endpoint}}


def _without(content: Mapping[str, Any], left_out: Mapping[str, str]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in left_out}


class ImportedPlan:
    """Imports the endpoint of a plan with the command, and plans what the command wrote."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
        self._root = root
        self._monkeypatch = monkeypatch
        self._command = command

    def __call__(self, stacks: Stacks, plan: dict[str, Any]) -> dict[str, Any]:
        """Returns the fields of the plan that the endpoint tells."""
        for variable, value in {
            "AWS_ENDPOINT_URL": stacks.aws.connection.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
            "AWS_CONFIG_FILE": "/dev/null",
        }.items():
            self._monkeypatch.setenv(variable, value)
        self._monkeypatch.chdir(write_project(self._root, {}))
        name = plan["config"]["name"]
        code, output, errors = self._command(
            "import", name, "--endpoint", plan["endpoint_name"],
            "--region", plan["environment"]["region"],
            "--family", "gpt2", "--parameters", "124439808",
        )  # fmt: skip
        assert (code, errors) == (0, "")
        assert f"{plan['endpoint_name']} is this model's own endpoint." in output
        text = (self._root / "model_configs" / f"{name}.yaml").read_text("utf-8")
        unwrapped = re.sub(r"\s*\n\s*# +", " ", text)
        assert f"which lie in {plan['artifact']['s3_uri']}." in unwrapped
        config = Project(self._root).config(name, LOCAL.name).config
        made = plan_for(config, LOCAL, lock_for(config, sets=("sample",)))
        return told(without_unset(plan_as_json(made)))
