"""Functions, parameters and rules of a template, without a server."""

import json
from typing import Any

import pytest

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.cloudformation.desired_state import DesiredState
from slipway.embedded_aws.cloudformation.document import read_document
from slipway.embedded_aws.cloudformation.intrinsics import Evaluator, TemplateError
from slipway.embedded_aws.cloudformation.parameters import parameter_values
from slipway.embedded_aws.cloudformation.stack_contents import StackIdentity
from slipway.embedded_aws.cloudformation.template import parse_template

ATTRIBUTES = {"Bucket": {"Arn": "arn:aws:s3:::b"}}
VALUES = {
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": "123456789012",
    "AWS::URLSuffix": "amazonaws.com",
    "Size": "3",
    "Names": ["a", "b"],
    "Empty": "",
}


class Resources:
    def reference(self, logical_id: str) -> Any:
        if logical_id not in ATTRIBUTES:
            raise TemplateError(f"no {logical_id}")
        return "bucket-name"

    def attribute(self, logical_id: str, attribute: str) -> Any:
        return ATTRIBUTES[logical_id][attribute]


class Lookups:
    def stack_output(self, stack: str, output: str, region: str | None) -> str:
        return f"{output} of {stack} in {region}"

    def exported(self, name: str) -> str:
        return f"exported {name}"

    def dynamic(self, service: str, key: str) -> str:
        return f"<{service} {key}>"

    def availability_zones(self, region: str) -> list[str]:
        return [f"{region}a", f"{region}b"]


def evaluator() -> Evaluator:
    return Evaluator(
        values=VALUES,
        mappings={"Regions": {"eu-west-1": {"Ami": "ami-1", "Zones": ["x", "y"]}}},
        conditions={
            "IsThree": {"Fn::Equals": [{"Ref": "Size"}, 3]},
            "IsEmpty": {"Fn::Equals": ["", {"Ref": "Empty"}]},
            "Not": {"Fn::Not": [{"Condition": "IsThree"}]},
            "Both": {"Fn::And": [{"Condition": "IsThree"}, {"Condition": "IsEmpty"}]},
            "Either": {"Fn::Or": [{"Condition": "Not"}, {"Fn::Equals": ["a", "b"]}]},
        },
        resources=Resources(),
        lookups=Lookups(),
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        ({"Ref": "Size"}, "3"),
        ({"Ref": "Bucket"}, "bucket-name"),
        ({"Ref": "AWS::Region"}, "eu-west-1"),
        ({"Fn::GetAtt": ["Bucket", "Arn"]}, "arn:aws:s3:::b"),
        ({"Fn::GetAtt": "Bucket.Arn"}, "arn:aws:s3:::b"),
        ({"Fn::Sub": "${Bucket.Arn}/${Size}-${!Literal}-${AWS::Region}"},
         "arn:aws:s3:::b/3-${Literal}-eu-west-1"),
        ({"Fn::Sub": ["${x}${y}", {"x": {"Ref": "Size"}, "y": 1}]}, "31"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Size"}, {"Ref": "AWS::NoValue"}, 4, True]]},
         "a-3-4-true"),
        ({"Fn::Join": [",", {"Ref": "Names"}]}, "a,b"),
        ({"Fn::Select": ["1", {"Fn::Split": ["/", "a/b/c"]}]}, "b"),
        ({"Fn::Select": [0, {"Fn::GetAZs": ""}]}, "eu-west-1a"),
        ({"Fn::FindInMap": ["Regions", {"Ref": "AWS::Region"}, "Ami"]}, "ami-1"),
        ({"Fn::FindInMap": ["Regions", "x", "Ami", {"DefaultValue": "none"}]}, "none"),
        ({"Fn::If": ["IsThree", "yes", "no"]}, "yes"),
        ({"Fn::If": ["Not", "yes", "no"]}, "no"),
        ({"Fn::If": ["Both", "yes", "no"]}, "yes"),
        ({"Fn::If": ["Either", "yes", "no"]}, "no"),
        ({"a": {"Fn::If": ["Not", 1, {"Ref": "AWS::NoValue"}]}, "b": 2}, {"b": 2}),
        ([1, {"Ref": "AWS::NoValue"}, 2], [1, 2]),
        ({"Fn::ImportValue": {"Fn::Sub": "x-${Size}"}}, "exported x-3"),
        (
            {"Fn::GetStackOutput": {"StackName": {"Fn::Sub": "x-${Size}"}, "OutputName": "Arn"}},
            "Arn of x-3 in None",
        ),
        ({"Fn::Base64": "hi"}, "aGk="),
        ({"Fn::Length": {"Ref": "Names"}}, 2),
        ({"Fn::ToJsonString": {"a": {"Ref": "Size"}}}, '{"a":"3"}'),
        ("{{resolve:ssm:/x:1}}!", "<ssm /x:1>!"),
        # A policy document's Condition is no function.
        ({"Condition": {"Bool": {"aws:SecureTransport": "false"}}},
         {"Condition": {"Bool": {"aws:SecureTransport": "false"}}}),
    ],
)  # fmt: skip
def test_functions(value, expected):
    assert evaluator().evaluate(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"Ref": "Nope"}, "no Nope"),
        ({"Fn::FindInMap": ["Regions", "x", "Ami"]}, "Unable to get mapping for Regions::x::Ami"),
        ({"Fn::Select": [5, ["a"]]}, "cannot select nonexistent value at index 5"),
        ({"Fn::Join": ["-", "text"]}, "Fn::Join needs a list"),
        ({"Fn::Join": ["-"]}, r"Fn::Join cannot be evaluated with \[\"-\"\]"),
        ({"Fn::Cidr": ["10.0.0.0/16", 2, 8]}, "does not evaluate Fn::Cidr"),
        ({"Fn::Teleport": 1}, "Fn::Teleport is not a supported function"),
    ],
)
def test_misused_functions(value, message):
    with pytest.raises(TemplateError, match=message):
        evaluator().evaluate(value)


def test_yaml_short_forms():
    document = read_document(
        """
        Resources:
          A:
            Type: X
            Properties:
              Version: 2012-10-17
              Ref: !Ref B
              Att: !GetAtt B.Outputs.Name
              Sub: !Sub "${B}"
              Joined: !Join ["-", [!Ref B, c]]
              If: !If [Yes, 1, !Ref AWS::NoValue]
              Not: !Not [!Condition Yes]
        """
    )
    assert document["Resources"]["A"]["Properties"] == {
        "Version": "2012-10-17",
        "Ref": {"Ref": "B"},
        "Att": {"Fn::GetAtt": ["B", "Outputs.Name"]},
        "Sub": {"Fn::Sub": "${B}"},
        "Joined": {"Fn::Join": ["-", [{"Ref": "B"}, "c"]]},
        "If": {"Fn::If": [True, 1, {"Ref": "AWS::NoValue"}]},
        "Not": {"Fn::Not": [{"Condition": "Yes"}]},
    }


def resolve(definition: dict[str, Any], value: str | None = None) -> Any:
    submitted = [{"ParameterKey": "P", "ParameterValue": value}] if value is not None else []
    stored = {"/name": "stored", "/list": "a,b"}
    values = parameter_values(
        {"P": definition}, submitted, {}, lambda names: {n: stored[n] for n in names if n in stored}
    )
    return values["P"].value


@pytest.mark.parametrize(
    ("definition", "value", "expected"),
    [
        ({"Type": "String", "Default": "d"}, None, "d"),
        ({"Type": "String", "Default": "d"}, "", ""),
        ({"Type": "Number", "Default": 3}, None, "3"),
        ({"Type": "CommaDelimitedList"}, "a, b", ["a", "b"]),
        ({"Type": "CommaDelimitedList", "Default": ""}, None, []),
        ({"Type": "List<Number>"}, "1,2", ["1", "2"]),
        ({"Type": "AWS::SSM::Parameter::Value<String>"}, "/name", "stored"),
        ({"Type": "AWS::SSM::Parameter::Value<List<String>>"}, "/list", ["a", "b"]),
        ({"Type": "AWS::EC2::VPC::Id"}, "vpc-1", "vpc-1"),
    ],
)
def test_parameters(definition, value, expected):
    assert resolve(definition, value) == expected


@pytest.mark.parametrize(
    ("definition", "value", "message"),
    [
        ({"Type": "String"}, None, r"Parameters: \[P\] must have values"),
        ({"Type": "Number"}, "x", "Parameter 'P' must be a number"),
        ({"Type": "String", "AllowedValues": ["a"]}, "b", r"must be one of AllowedValues \[a\]"),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, "B", "must match pattern"),
        (
            {"Type": "String", "AllowedPattern": "x", "ConstraintDescription": "be x"},
            "y",
            "Parameter P failed to satisfy constraint: be x",
        ),
        ({"Type": "String", "MaxLength": 1}, "ab", "at most 1 characters"),
        ({"Type": "Number", "MinValue": 2}, "1", "not less than 2"),
        (
            {"Type": "AWS::SSM::Parameter::Value<String>"},
            "/gone",
            r"Unable to fetch parameters \[/gone\] from parameter store for this account",
        ),
    ],
)
def test_refused_parameters(definition, value, message):
    with pytest.raises(ApiError, match=message):
        resolve(definition, value)


def test_unknown_parameter():
    with pytest.raises(ApiError, match=r"Parameters: \[P\] do not exist in the template"):
        parameter_values({}, [{"ParameterKey": "P", "ParameterValue": "x"}], {}, lambda _: {})


def test_rules():
    """CDK's check of the bootstrap version is such a rule."""
    is_known = {"Fn::Not": [{"Fn::Contains": [["1", "2"], {"Ref": "Version"}]}]}
    assertion = {"Assert": is_known, "AssertDescription": "too old"}
    content = {
        "Parameters": {"Version": {"Type": "String"}},
        "Resources": {"A": {"Type": "AWS::Logs::LogGroup"}},
        "Rules": {"Check": {"Assertions": [assertion]}},
    }
    template = parse_template(json.dumps(content))
    identity = StackIdentity("s", "arn", "eu-west-1", "123456789012")
    for version, broken in (("2", ["Rule Check: too old"]), ("30", [])):
        submitted = [{"ParameterKey": "Version", "ParameterValue": version}]
        values = parameter_values(template.parameters, submitted, {}, lambda _: {})
        desired = DesiredState(template, values, {}, (), ())
        evaluator = desired.evaluator(identity, Resources(), Lookups())
        assert desired.broken_rules(evaluator) == broken
