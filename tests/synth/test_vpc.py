"""Endpoints in a VPC, and what the foundation adds to it."""

from pathlib import Path
from typing import Any

import aws_cdk as cdk

from slipway.stacks.endpoint_stack import EndpointStack
from slipway.stacks.foundation_stack import FoundationStack
from tests.support.plans import plan_for
from tests.support.projects import NETWORKED, model_config
from tests.synth.assemblies import Assembly, new_app, target_of

TARGET = target_of(NETWORKED)
GROUPS = [["sg-0a1b2c3d"], ["sg-4e5f6a7b"]]


def add_model(app: cdk.App, name: str, **vpc: Any) -> None:
    config = model_config("tiny", endpoint={"vpc": vpc} if vpc else {})
    plan = plan_for(config, NETWORKED)
    EndpointStack(app, name, plan=plan, env=TARGET)


def test_other_rights_are_another_policy(tmp_path: Path) -> None:
    app = new_app(tmp_path)
    for index, groups in enumerate([*GROUPS, GROUPS[0]]):
        add_model(app, f"model{index}", subnet_ids=["subnet-0a1b2c3d"], security_group_ids=groups)
    assembly = Assembly(Path(app.synth().directory))
    found = [assembly.resources(f"model{index}", "AWS::IAM::Policy") for index in range(3)]
    (first,), (second,), (again,) = found
    assert first != second
    assert first == again
    # The role may hold both at a time.
    names = [each["Properties"]["PolicyName"] for (each,) in (f.values() for f in found)]
    assert names[0] != names[1]
    model = assembly.only("model0", "AWS::SageMaker::Model")
    assert model["DependsOn"] == [first]


def test_named_groups_leave_the_foundation_without_one(tmp_path: Path) -> None:
    network = NETWORKED.network
    assert network is not None
    named = network.model_copy(
        update={"security_group_ids": ("sg-0a1b2c3d",), "vpc_endpoints": ("sts",)}
    )
    app = new_app(tmp_path)
    environment = NETWORKED.model_copy(update={"network": named})
    FoundationStack(app, "foundation", environment=environment, env=TARGET)
    assembly = Assembly(Path(app.synth().directory))
    # The VPC endpoint's own, which the named group may enter.
    entrance = assembly.only("foundation", "AWS::EC2::SecurityGroup")["Properties"]
    (rule,) = entrance["SecurityGroupIngress"]
    assert rule["SourceSecurityGroupId"] == "sg-0a1b2c3d"
    assert (rule["FromPort"], rule["ToPort"]) == (443, 443)
    parameters = assembly.resources("foundation", "AWS::SSM::Parameter").values()
    names = {each["Properties"]["Name"] for each in parameters}
    assert "/slipway/networked/security-group-id" not in names
