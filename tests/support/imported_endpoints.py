"""Endpoints that Slipway deployed, imported from their live state."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from embedded_aws.identity import ACCESS_KEY_ID
from slipway.facts.instances import instance_types
from slipway.planning.resolve import resolve
from slipway.project import Project
from tests.support.accounts import SECRET_ACCESS_KEY
from tests.support.golden_cases import without_unset
from tests.support.projects import IMAGE_DIGESTS, LOCAL, lock_for, write_project
from tests.support.stacks import Stacks

NOT_TOLD: Mapping[str, str] = {
    "description": "a sentence for people, which only the template of the stack has",
    "artifact": "the address of the files is told, and copied by the printed command; size and "
    "number of the files come from publishing",
    "termination_protection": "CloudFormation tells it of the stack, and not of the endpoint",
    "memory": "no answer tells the network's size and precision; both are given as options",
}
"""Fields of a plan that neither a Describe call nor an artifact tells, each with the reason."""

QUEUE_NOT_TOLD: Mapping[str, str] = {
    "input": "only the rights of the execution role have it, and these may be wider",
    "input_key_arn": "a right of the execution role",
    "topic_key_arn": "a setting of the topic",
}
"""Fields of a plan's queue that no Describe call tells, each with the reason."""


COMPONENT_NOT_TOLD: Mapping[str, str] = {
    "rollout": "the component tells the rollout of its last update, and a new one had none",
}
"""Fields of the plan of an inference component that no Describe call tells until an update."""


def told(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a plan that an endpoint tells."""
    left_out = {**NOT_TOLD, **(COMPONENT_NOT_TOLD if "component" in plan else {})}
    found = {name: value for name, value in plan.items() if name not in left_out}
    if "asynchronous" in found:
        queue = {
            name: value
            for name, value in found["asynchronous"].items()
            if name not in QUEUE_NOT_TOLD
        }
        found["asynchronous"] = queue
    return found


class ImportedPlan:
    """Imports the endpoint of a plan with the command, and plans what the command wrote.

    Args:
        root: an empty folder for the project.
        monkeypatch: points the shell at the embedded AWS, and at the project.
        command: runs a command of `slipway`.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
        self._root = root
        self._monkeypatch = monkeypatch
        self._command = command

    def __call__(self, stacks: Stacks, plan: dict[str, Any]) -> dict[str, Any]:
        """Returns the fields of the plan that the endpoint tells.

        Args:
            stacks: the account with the endpoint.
            plan: the plan that was deployed.
        """
        for variable, value in {
            "AWS_ENDPOINT_URL": stacks.aws.connection.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
            "AWS_CONFIG_FILE": "/dev/null",
        }.items():
            self._monkeypatch.setenv(variable, value)
        self._monkeypatch.chdir(write_project(self._root, {}))
        name = plan["name"]
        code, output, errors = self._command(
            "import", name, "--endpoint", plan["endpoint_name"], "--region", plan["region"],
            "--family", "gpt2", "--parameters", "124439808",
        )  # fmt: skip
        assert (code, errors) == (0, "")
        assert f"{plan['endpoint_name']} is this model's own endpoint." in output
        text = (self._root / "model_configs" / f"{name}.yaml").read_text("utf-8")
        unwrapped = re.sub(r"\s*\n\s*# +", " ", text)
        assert f"which lie in {plan['artifact']['s3_uri']}." in unwrapped
        config = Project(self._root).config(name, LOCAL.name).config
        lock = lock_for(config, sets=("sample",))
        made = resolve(config, instance_types(), LOCAL, lock, IMAGE_DIGESTS)
        return told(without_unset(made.as_json()))
