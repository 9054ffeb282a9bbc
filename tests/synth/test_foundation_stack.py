"""What no golden template shows of the foundation: its order, its readers, and named groups."""

import json
import re
from pathlib import Path

from tests.support.prepared_accounts import synthesised_foundation
from tests.support.projects import LOCAL, NETWORKED, PRODUCTION
from tests.synth.assemblies import Assembly


def test_nothing_of_the_foundation_is_deployed_before_the_guard_has_compared(assembly: Assembly):
    template = assembly.template("foundation")
    ((guard, request),) = assembly.resources("foundation", "Custom::SlipwayFoundation").items()
    assert request["Properties"]["Project"] == ""
    assert request["Properties"]["ArtifactBucket"] == LOCAL.artifact_bucket
    (function,) = assembly.resources("foundation", "AWS::Lambda::Function")
    needed, waiting = {guard}, [guard, function]
    while waiting:
        resource = template["Resources"][waiting.pop()]
        found = set(re.findall(r'"(?:Ref|Fn::GetAtt)": \[?"(\w+)"', json.dumps(resource)))
        more = (found | set(resource.get("DependsOn", []))) & set(template["Resources"]) - needed
        needed |= more
        waiting += more
    for name, resource in template["Resources"].items():
        assert name in needed or guard in resource["DependsOn"], name
    kinds = {template["Resources"][name]["Type"] for name in needed}
    assert kinds == {
        "AWS::IAM::Role",
        "AWS::Lambda::Function",
        "AWS::Logs::LogGroup",
        "Custom::SlipwayFoundation",
    }


def statements(resource: dict, policy: str) -> dict[str, dict]:
    found = resource["Properties"][policy]["Statement"]
    return {each["Sid"]: each for each in found if "Sid" in each}


def test_other_accounts_read_published_artifacts_if_the_environment_names_them(tmp_path: Path):
    readers = ("111122223333", "444455556666")
    environment = PRODUCTION.model_copy(update={"artifact_readers": readers})
    synthesised_foundation(environment, tmp_path)
    assembly = Assembly(tmp_path)
    roots = [f"arn:aws:iam::{account}:root" for account in readers]
    key = statements(assembly.only("foundation", "AWS::KMS::Key"), "KeyPolicy")
    assert key["ArtifactReaders"] == {
        "Sid": "ArtifactReaders",
        "Effect": "Allow",
        "Principal": {"AWS": roots},
        "Action": "kms:Decrypt",
        "Resource": "*",
        "Condition": {"StringLike": {"kms:ViaService": "s3.eu-west-1.amazonaws.com*"}},
    }
    found = {}
    for policy in assembly.resources("foundation", "AWS::S3::BucketPolicy").values():
        found |= {
            name: statement
            for name, statement in statements(policy, "PolicyDocument").items()
            if name.startswith("ArtifactReaders")
        }
    assert {name: each["Action"] for name, each in found.items()} == {
        "ArtifactReadersList": "s3:ListBucket",
        "ArtifactReadersRead": "s3:GetObject",
    }
    assert all(each["Principal"] == {"AWS": roots} for each in found.values())
    # Neither the output of jobs nor the files of isolated models.
    read = [each["Fn::Join"][1][1] for each in found["ArtifactReadersRead"]["Resource"]]
    assert read == ["/artifacts/*", "/recipes/*"]


def test_named_groups_leave_the_foundation_without_one(tmp_path: Path) -> None:
    network = NETWORKED.network
    assert network is not None
    named = network.model_copy(
        update={"security_group_ids": ("sg-0a1b2c3d",), "vpc_endpoints": ("sts",)}
    )
    synthesised_foundation(NETWORKED.model_copy(update={"network": named}), tmp_path)
    assembly = Assembly(tmp_path)
    # The VPC endpoint's own, which the named group may enter.
    entrance = assembly.only("foundation", "AWS::EC2::SecurityGroup")["Properties"]
    (rule,) = entrance["SecurityGroupIngress"]
    assert rule["SourceSecurityGroupId"] == "sg-0a1b2c3d"
    assert (rule["FromPort"], rule["ToPort"]) == (443, 443)
    parameters = assembly.resources("foundation", "AWS::SSM::Parameter").values()
    names = {each["Properties"]["Name"] for each in parameters}
    assert "/slipway/networked/security-group-id" not in names
