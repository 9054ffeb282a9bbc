"""Every role that Slipway makes has the environment's permissions boundary."""

import json
from pathlib import Path

from slipway.cli.plan_text import describe_plan
from tests.support.plans import plan_for
from tests.support.projects import PRODUCTION, model_config
from tests.synth.security import KEYS, make_app

BOUNDARY = "arn:aws:iam::210987654321:policy/boundary"


def test_no_role_is_without_it(tmp_path: Path) -> None:
    app = make_app(
        tmp_path,
        lines=f"{KEYS}  permissions_boundary_arn: {BOUNDARY}\n",
        models=("scaled", "lmi-built", "lmi-partition"),
    )
    directory = Path(app.synth().directory)
    roles = {
        f"{file.name.partition('.')[0]}/{name}": resource["Properties"].get("PermissionsBoundary")
        for file in directory.glob("*.template.json")
        for name, resource in json.loads(file.read_text("utf-8"))["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role"
    }
    stacks = {path.partition("/")[0] for path in roles}
    assert {"foundation", "scaled", "artifacts-lmi-partition", "image-lmi"} <= stacks
    assert [path for path, boundary in roles.items() if boundary != BOUNDARY] == []


def test_the_plan_tells_it() -> None:
    config = model_config()
    environment = PRODUCTION.model_copy(update={"permissions_boundary_arn": BOUNDARY})
    plan = plan_for(config, environment)
    lines = dict(line.split(maxsplit=1) for line in describe_plan(plan).splitlines())
    assert lines["boundary"] == f"every role is limited by {BOUNDARY}"
