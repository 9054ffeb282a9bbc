"""The foundation keeps the models' files and lets nobody else at them."""

import json
import re
from pathlib import Path

from slipway.stacks.foundation_stack import FoundationStack
from tests.support.projects import LOCAL, PRODUCTION
from tests.synth.assemblies import Assembly, new_app, target_of


def buckets(assembly: Assembly) -> dict[str, dict]:
    found = assembly.resources("foundation", "AWS::S3::Bucket").values()
    return {bucket["Properties"]["BucketName"]: bucket for bucket in found}


def test_buckets_outlive_the_stack_and_are_closed(assembly: Assembly):
    found = buckets(assembly)
    assert set(found) == {LOCAL.artifact_bucket, f"{LOCAL.artifact_bucket}-logs"}
    for bucket in found.values():
        # A creation that fails must not leave a name behind that the next one needs.
        assert bucket["DeletionPolicy"] == "RetainExceptOnCreate"
        assert bucket["UpdateReplacePolicy"] == "Retain"
        assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    policies = assembly.resources("foundation", "AWS::S3::BucketPolicy").values()
    assert len(policies) == 2
    for policy in policies:
        denied = [
            statement["Condition"]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if statement["Effect"] == "Deny"
        ]
        assert {"Bool": {"aws:SecureTransport": "false"}} in denied


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
    app = new_app(tmp_path)
    target = target_of(environment)
    FoundationStack(app, "foundation", environment=environment, env=target)
    app.synth()
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


def test_no_published_file_ever_expires(assembly: Assembly):
    artifacts = buckets(assembly)[LOCAL.artifact_bucket]["Properties"]
    expiring = [
        rule
        for rule in artifacts["LifecycleConfiguration"]["Rules"]
        if {"ExpirationInDays", "ExpirationDate", "Transitions"} & set(rule)
    ]
    # A job's output was copied into an artifact; `recipes/` and `artifacts/` stay.
    assert expiring == [
        {"ExpirationInDays": 14, "Prefix": "compile/", "Status": "Enabled"},
        # What was sent, with its versions: nobody who publishes may delete.
        {
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
            "ExpirationInDays": 1,
            "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
            "Prefix": "incoming/",
            "Status": "Enabled",
        },
    ]
