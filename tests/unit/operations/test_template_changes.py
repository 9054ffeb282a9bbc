"""What CloudFormation does from one template to another: the verdict, the rows, and the rights."""

import copy
from typing import Any

import pytest

from slipway.operations.template_changes import template_effects, template_reach

BUCKET = "AWS::S3::Bucket"
TEMPLATE: dict[str, Any] = {
    "Role": {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": {
                "Statement": [
                    {
                        "Action": "sts:AssumeRole",
                        "Effect": "Allow",
                        "Principal": {"Service": "sagemaker.amazonaws.com"},
                        "Condition": {"StringEquals": {"aws:SourceAccount": "1"}},
                    }
                ]
            },
            "Policies": [
                {
                    "PolicyName": "Serving",
                    "PolicyDocument": {
                        "Statement": {
                            "Action": ["s3:GetObject"],
                            "Effect": "Allow",
                            "Resource": {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}]]},
                        }
                    },
                }
            ],
        },
    },
    "Model": {
        "Type": "AWS::SageMaker::Model",
        "Properties": {
            "ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
            "PrimaryContainer": {"Image": "image:1"},
            "Tags": [],
        },
    },
    "Config": {
        "Type": "AWS::SageMaker::EndpointConfig",
        "Properties": {
            "ProductionVariants": [{"ModelName": {"Fn::GetAtt": ["Model", "ModelName"]}}]
        },
    },
    "Endpoint": {
        "Type": "AWS::SageMaker::Endpoint",
        "Properties": {
            "EndpointName": "chat-production",
            "EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]},
        },
    },
    "Copies": {
        "Type": "AWS::SageMaker::InferenceComponent",
        "Properties": {"EndpointName": "host", "Specification": {"ModelName": {"Ref": "Other"}}},
    },
    "Files": {"Type": BUCKET, "Properties": {"Tags": [{"Ref": "Model"}]}},
    "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Threshold": 1}},
}

CHANGES = {
    "nothing": ({}, []),
    "an image": (
        {"Model.PrimaryContainer": {"Image": "image:2"}},
        [
            "new fleet: AWS::SageMaker::Model is made anew",
            "new fleet: AWS::SageMaker::EndpointConfig is made anew",
            "in place: AWS::S3::Bucket changes Tags",
        ],
    ),
    "a tag of the model": ({"Model.Tags": [1]}, ["in place: AWS::SageMaker::Model changes Tags"]),
    "copies": (
        {"Copies.Specification": {"ModelName": "b"}},
        ["new fleet: AWS::SageMaker::InferenceComponent changes"],
    ),
    "another name of the endpoint": (
        {"Endpoint.EndpointName": "other"},
        ["replaced with a gap: AWS::SageMaker::Endpoint Endpoint is made anew"],
    ),
    "no bucket": ({"Files": None}, ["replaced with a gap: AWS::S3::Bucket Files is removed"]),
    "another type": (
        {"Alarm": {"Type": "AWS::SNS::Topic"}},
        ["refused by AWS: AWS::CloudWatch::Alarm Alarm"],
    ),
    "a threshold, and a dashboard": (
        {"Alarm.Threshold": 2, "Board": {"Type": "AWS::CloudWatch::Dashboard"}},
        [
            "in place: AWS::CloudWatch::Alarm changes Threshold",
            "in place: AWS::CloudWatch::Dashboard is added",
        ],
    ),
    "a type that the table lacks": (
        {"Queue": {"Type": "AWS::SQS::Queue"}},
        ["in place: AWS::SQS::Queue is added"],
    ),
}


def edited(edits: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(TEMPLATE)
    for place, value in edits.items():
        name, _, key = place.partition(".")
        if key:
            found[name]["Properties"][key] = value
        elif value is None:
            del found[name]
        else:
            found[name] = value
    return found


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_has_its_consequence(change: str) -> None:
    edits, expected = CHANGES[change]
    effects = template_effects(TEMPLATE, edited(edits))
    assert [f"{each.consequence}: {each.setting}" for each in effects] == expected


def test_a_fleets_cause_is_shown_and_a_name_that_is_taken_is_refused() -> None:
    image, config = template_effects(TEMPLATE, edited(CHANGES["an image"][0]))[:2]
    assert (image.before, image.after) == ('"Image": "image:1"', '"Image": "image:2"')
    assert (config.before, config.after) == (None, None)
    after = edited({})
    after["OtherId"] = after.pop("Endpoint")
    effects = template_effects(TEMPLATE, after)
    assert [(str(each.consequence), each.setting) for each in effects] == [
        ("refused by AWS", "AWS::SageMaker::Endpoint Endpoint is made anew"),
        ("in place", "AWS::SageMaker::Endpoint is added"),
    ]
    after["OtherId"]["Properties"]["EndpointName"] = "other"
    assert template_effects(TEMPLATE, after)[0].consequence == "replaced with a gap"


def rights(edits: dict[str, Any]) -> list[tuple[bool, str]]:
    found = template_reach(TEMPLATE, edited(edits))
    return [(each.is_wider, each.text) for each in found]


def policy(**statement: Any) -> dict[str, Any]:
    return {"Type": "AWS::IAM::Policy", "Properties": {
        "PolicyDocument": {"Statement": [{"Effect": "Allow", **statement}]},
        "Roles": [{"Ref": "RoleCDF74862"}],
    }}  # fmt: skip


def test_a_further_right_and_a_denial_that_goes_widen() -> None:
    assert rights({"Policy": policy(Action=["s3:PutObject", "s3:GetObject"], Resource="*")}) == [
        (True, "s3:PutObject, s3:GetObject on *, for Role")
    ]
    denial = {"Policy": policy(Action="s3:*", Resource="*") | {}}
    denial["Policy"]["Properties"]["PolicyDocument"]["Statement"][0]["Effect"] = "Deny"
    assert rights(denial) == [(False, "s3:* on *, denied by Role")]
    assert [each.is_wider for each in template_reach(edited(denial), TEMPLATE)] == [True]


def test_a_further_condition_narrows_and_a_lost_one_widens() -> None:
    trust = copy.deepcopy(TEMPLATE["Role"]["Properties"]["AssumeRolePolicyDocument"])
    conditions = trust["Statement"][0]["Condition"]
    conditions["ArnLike"] = {"aws:SourceArn": "arn:*"}
    line = "sts:AssumeRole on sagemaker.amazonaws.com"
    known = ", if aws:SourceAccount StringEquals 1"
    assert rights({"Role.AssumeRolePolicyDocument": trust}) == [(False, f"{line}{known}, for Role")]
    trust["Statement"][0]["Condition"] = {}
    assert rights({"Role.AssumeRolePolicyDocument": trust}) == [(True, f"{line}, for Role")]
