"""What a model's template must be, whatever else changes in it."""

import pytest

from tests.support.projects import DIGEST, LOCAL
from tests.synth.assemblies import GOOD, Assembly

BUCKET = f"arn:aws:s3:::{LOCAL.artifact_bucket}"


@pytest.mark.parametrize("model", GOOD)
def test_only_the_endpoint_and_what_it_writes_to_have_names(assembly: Assembly, model: str):
    named = {
        (resource["Type"], key): value
        for resource in assembly.template(model)["Resources"].values()
        for key, value in resource["Properties"].items()
        if key.endswith("Name") and isinstance(value, str)
    }
    named.pop(("AWS::ApplicationAutoScaling::ScalingPolicy", "PolicyName"), None)
    # It is told the endpoint's name.
    named.pop(("Custom::SlipwayScaling", "EndpointName"))
    # The name of the metric an alarm looks at.
    named.pop(("AWS::CloudWatch::Alarm", "MetricName"))
    assert named == {
        ("AWS::SageMaker::Endpoint", "EndpointName"): f"{model}-local",
        ("AWS::Logs::LogGroup", "LogGroupName"): f"/aws/sagemaker/Endpoints/{model}-local",
        # It is found by it, and belongs to no region.
        ("AWS::CloudWatch::Dashboard", "DashboardName"): f"{model}-local-us-east-1",
    }


def test_the_endpoint_waits_for_its_log_group_and_takes_it_along(assembly: Assembly):
    group_id, group = assembly.named("fixed", "AWS::Logs::LogGroup", "Hosting")
    assert group_id in assembly.only("fixed", "AWS::SageMaker::Endpoint")["DependsOn"]
    assert group["DeletionPolicy"] == group["UpdateReplacePolicy"] == "Delete"
    assert group["Properties"]["RetentionInDays"] == 30


@pytest.mark.parametrize("model", GOOD)
def test_an_update_of_the_endpoint_is_surrounded(assembly: Assembly, model: str):
    """What fails before the endpoint fails before anything is deregistered."""
    endpoint_id, endpoint = assembly.named(model, "AWS::SageMaker::Endpoint", "Hosting")
    before_id, before = assembly.named(model, "Custom::SlipwayScaling", "EndpointUpdateBefore")
    undo_id, undo = assembly.named(model, "Custom::SlipwayScaling", "EndpointUpdateUndo")
    after_id, after = assembly.named(model, "Custom::SlipwayScaling", "EndpointUpdateAfter")
    config_id, config = assembly.named(model, "AWS::SageMaker::EndpointConfig", "Hosting")
    assert before_id in endpoint["DependsOn"]
    assert after["DependsOn"] == [endpoint_id]
    # The alarms that watch the endpoint, and its configuration, which comes after Undo.
    assert set(assembly.resources(model, "AWS::CloudWatch::Alarm")) < set(before["DependsOn"])
    assert config["DependsOn"] == [undo_id]
    assert before["Properties"]["ConfigName"] == {"Fn::GetAtt": [config_id, "EndpointConfigName"]}
    # They are told names alone: a setting is in one place of the template.
    names = {"ServiceTimeout", "ServiceToken", "EndpointName", "Step"}
    assert set(undo["Properties"]) == names
    for each in (before, after):
        assert set(each["Properties"]) == names | {"ConfigName", "Scaled"}
        assert each["Properties"]["Scaled"] == ([] if model == "fixed" else ["AllTraffic"])
    if model == "scaled":
        target = assembly.only(model, "AWS::ApplicationAutoScaling::ScalableTarget")
        assert target["DependsOn"] == [after_id]


def test_dropping_autoscaling_makes_a_new_endpoint_configuration(assembly: Assembly):
    fixed, scaled = (
        set(assembly.resources(model, "AWS::SageMaker::EndpointConfig")) for model in GOOD
    )
    assert not fixed & scaled


def test_the_foundations_ids_come_by_ssm_and_stacks_are_not_tied(assembly: Assembly):
    template = assembly.template("fixed")
    ours = {k: v for k, v in template["Parameters"].items() if k != "BootstrapVersion"}
    assert {name: (item["Type"], item["Default"]) for name, item in ours.items()} == {
        "ArtifactKeyArn": (
            "AWS::SSM::Parameter::Value<String>",
            "/slipway/local/artifact-key-arn",
        ),
        "NotificationTopicArn": (
            "AWS::SSM::Parameter::Value<String>",
            "/slipway/local/notification-topic-arn",
        ),
    }
    written = assembly.resources("foundation", "AWS::SSM::Parameter").values()
    # What publishing reads comes from there too.
    assert {item["Properties"]["Name"] for item in written} == {
        *(item["Default"] for item in ours.values()),
        "/slipway/local/compile-role-arn",
    }
    for stack in ("foundation", "fixed"):
        outputs = assembly.template(stack).get("Outputs", {})
        assert [name for name, output in outputs.items() if "Export" in output] == []
    assert "Fn::ImportValue" not in str(template)
    assert "foundation" in assembly.stacks()["fixed"]["dependencies"]


def test_every_resource_that_can_be_is_tagged(assembly: Assembly):
    untagged = {
        resource["Type"]
        for resource in assembly.template("scaled")["Resources"].values()
        if {"Key": "slipway:model", "Value": "scaled"} not in resource["Properties"].get("Tags", [])
    }
    assert untagged == {"AWS::ApplicationAutoScaling::ScalingPolicy", "Custom::SlipwayScaling"}


def test_the_role_may_do_this_and_nothing_else(assembly: Assembly):
    role = assembly.named("fixed", "AWS::IAM::Role", "ExecutionRole")[1]["Properties"]
    assert "ManagedPolicyArns" not in role
    (policy,) = role["Policies"]
    assert policy["PolicyDocument"]["Statement"] == [
        {
            "Sid": "ReadArtifacts",
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": f"{BUCKET}/artifacts/*",
        },
        {
            "Sid": "ListArtifacts",
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": BUCKET,
            "Condition": {"StringLike": {"s3:prefix": "artifacts/*"}},
        },
        {
            "Sid": "DecryptArtifacts",
            "Effect": "Allow",
            "Action": "kms:Decrypt",
            "Resource": {"Ref": "ArtifactKeyArn"},
        },
        {
            "Sid": "PullImage",
            "Effect": "Allow",
            "Action": [
                "ecr:BatchCheckLayerAvailability",
                "ecr:BatchGetImage",
                "ecr:GetDownloadUrlForLayer",
            ],
            "Resource": "arn:aws:ecr:us-east-1:123456789012:repository/slipway/tensorrt",
        },
        {
            "Sid": "LogInToRegistry",
            "Effect": "Allow",
            "Action": "ecr:GetAuthorizationToken",
            "Resource": "*",
        },
        {
            "Sid": "WriteLogs",
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            "Resource": (
                "arn:aws:logs:us-east-1:123456789012:log-group:"
                "/aws/sagemaker/Endpoints/fixed-local:*"
            ),
        },
        {
            "Sid": "PublishMachineMetrics",
            "Effect": "Allow",
            "Action": "cloudwatch:PutMetricData",
            "Resource": "*",
            "Condition": {"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/Endpoints"}},
        },
    ]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    # Nobody else's SageMaker takes the role on.
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}
    # No endpoint: AWS's page demands the asterisk.
    (source,) = trust["Condition"]["ArnLike"].values()
    assert source.endswith(":sagemaker:us-east-1:123456789012:*")


def test_the_role_does_not_change_with_the_weights(assembly: Assembly):
    assert DIGEST in str(assembly.template("fixed"))
    assert DIGEST not in str(assembly.resources("fixed", "AWS::IAM::Role"))
    assert not assembly.resources("fixed", "AWS::IAM::Policy")


def test_with_autoscaling_an_update_keeps_the_fleets_size(assembly: Assembly):
    endpoint = assembly.only("scaled", "AWS::SageMaker::Endpoint")["Properties"]
    assert endpoint["RetainAllVariantProperties"] is True
    assert endpoint["ExcludeRetainedVariantProperties"] == [
        {"VariantPropertyType": "DesiredWeight"},
        {"VariantPropertyType": "DataCaptureConfig"},
    ]
    target = assembly.only("scaled", "AWS::ApplicationAutoScaling::ScalableTarget")
    assert target["Properties"]["ResourceId"] == "endpoint/scaled-local/variant/AllTraffic"
    assert "RoleARN" not in target["Properties"]
