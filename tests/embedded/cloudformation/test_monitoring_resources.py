"""Alarms, logs, topics and scaling: what a template says is what the API shows."""

import json
from typing import Any

from tests.embedded.cloudformation.templates import (
    ARN,
    INSTANCES,
    get_att,
    policy,
    read_policy,
    resource,
    target,
    template,
)


def test_topic_with_policy_and_subscription(stacks):
    topic = resource("AWS::SNS::Topic", DisplayName="alarms", KmsMasterKeyId="alias/aws/sns")
    ref, publish = {"Ref": "Topic"}, read_policy("sns:Publish")
    mail = {"Protocol": "email", "Endpoint": "oncall@example.com"}
    body = template(
        {"Arn": ref, "Name": get_att("Topic", "TopicName")},
        Topic=topic,
        Policy=resource("AWS::SNS::TopicPolicy", Topics=[ref], PolicyDocument=publish),
        Subscription=resource("AWS::SNS::Subscription", TopicArn=ref, **mail),
    )
    assert stacks.create("topics", body) == "CREATE_COMPLETE"
    outputs = stacks.outputs("topics")
    sns = stacks.client("sns")
    attributes = sns.get_topic_attributes(TopicArn=outputs["Arn"])["Attributes"]
    assert attributes["DisplayName"] == "alarms"
    assert attributes["KmsMasterKeyId"] == "alias/aws/sns"
    assert json.loads(attributes["Policy"])["Statement"][0]["Action"] == "sns:Publish"
    listed = sns.list_subscriptions_by_topic(TopicArn=outputs["Arn"])["Subscriptions"]
    assert [s["Endpoint"] for s in listed] == ["oncall@example.com"]

    topic["Properties"]["DisplayName"] = "pager"
    del body["Resources"]["Policy"], body["Resources"]["Subscription"]
    assert stacks.update("topics", body) == "UPDATE_COMPLETE"
    attributes = sns.get_topic_attributes(TopicArn=outputs["Arn"])["Attributes"]
    assert attributes["DisplayName"] == "pager"
    assert json.loads(attributes["Policy"])["Id"] == "__default_policy_ID"
    assert not sns.list_subscriptions_by_topic(TopicArn=outputs["Arn"])["Subscriptions"]
    assert stacks.delete("topics") == "DELETE_COMPLETE"


def test_dashboard(stacks):
    def body_of(title):
        text = {"type": "text", "properties": {"markdown": title}}
        return json.dumps({"widgets": [text]})

    board = resource(
        "AWS::CloudWatch::Dashboard",
        DashboardName="board",
        DashboardBody=body_of("first"),
        Tags=[{"Key": "team", "Value": "ml"}, {"Key": "old", "Value": "x"}],
    )
    body = template({"Name": {"Ref": "Board"}}, Board=board)
    cloudwatch = stacks.client("cloudwatch")

    def shown():
        found = cloudwatch.get_dashboard(DashboardName="board")
        tags = cloudwatch.list_tags_for_resource(ResourceARN=found["DashboardArn"])["Tags"]
        return found["DashboardBody"], {
            tag["Key"]: tag["Value"] for tag in tags if not tag["Key"].startswith("aws:")
        }

    assert stacks.create("boards", body) == "CREATE_COMPLETE"
    assert stacks.outputs("boards") == {"Name": "board"}
    assert shown() == (body_of("first"), {"team": "ml", "old": "x"})
    assert stacks.create("others", body) == "ROLLBACK_COMPLETE"
    assert shown() == (body_of("first"), {"team": "ml", "old": "x"})

    board["Properties"] |= {
        "DashboardBody": body_of("second"),
        "Tags": [{"Key": "team", "Value": "search"}],
    }
    assert stacks.update("boards", body) == "UPDATE_COMPLETE"
    assert shown() == (body_of("second"), {"team": "search"})
    board["Properties"]["DashboardBody"] = "{"
    assert stacks.update("boards", body) == "UPDATE_ROLLBACK_COMPLETE"
    assert shown() == (body_of("second"), {"team": "search"})
    assert stacks.delete("boards") == "DELETE_COMPLETE"
    assert cloudwatch.list_dashboards()["DashboardEntries"] == []


def summed(name, metric, dimensions):
    of = {"Namespace": "AWS/SageMaker", "MetricName": metric, "Dimensions": dimensions}
    stat = {"Stat": "Sum", "Period": 60, "Metric": of}
    return {"Id": name, "ReturnData": False, "MetricStat": stat}


def test_alarm_and_log_group(stacks):
    plain = resource(
        "AWS::CloudWatch::Alarm",
        Namespace="AWS/SageMaker",
        MetricName="ModelLatency",
        Dimensions=[{"Name": "EndpointName", "Value": "e"}],
        ExtendedStatistic="p99",
        Period="60",
        EvaluationPeriods=3,
        DatapointsToAlarm=2,
        Threshold="250000.5",
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="notBreaching",
        AlarmActions=["arn:aws:sns:eu-west-1:123456789012:t"],
    )
    expression = {"Id": "rate", "Expression": "errors / total", "Label": "rate"}
    rate = resource(
        "AWS::CloudWatch::Alarm",
        Metrics=[
            {**expression, "ReturnData": True},
            summed("errors", "Invocation5XXErrors", [{"Name": "EndpointName", "Value": "e"}]),
            summed("total", "Invocations", []),
        ],
        EvaluationPeriods=1,
        Threshold=0.01,
        ComparisonOperator="GreaterThanThreshold",
    )
    group = resource(
        "AWS::Logs::LogGroup",
        LogGroupName="/aws/sagemaker/Endpoints/e",
        RetentionInDays=30,
        Tags=[{"Key": "team", "Value": "ml"}],
    )
    body = template(
        {"Group": get_att("Group", "Arn"), "Alarm": {"Ref": "Plain"}, "Rate": {"Ref": "Rate"}},
        Plain=plain,
        Rate=rate,
        Group=group,
    )
    assert stacks.create("monitoring", body) == "CREATE_COMPLETE"
    outputs = stacks.outputs("monitoring")
    assert outputs["Group"] == ARN.format("logs", "log-group:/aws/sagemaker/Endpoints/e:*")
    cloudwatch, logs = stacks.client("cloudwatch"), stacks.client("logs")
    alarm = cloudwatch.describe_alarms(AlarmNames=[outputs["Alarm"]])["MetricAlarms"][0]
    assert (alarm["ExtendedStatistic"], alarm["Period"], alarm["Threshold"]) == (
        "p99",
        60,
        250000.5,
    )
    assert alarm["DatapointsToAlarm"] == 2
    assert alarm["TreatMissingData"] == "notBreaching"
    assert alarm["AlarmActions"] == ["arn:aws:sns:eu-west-1:123456789012:t"]
    math = cloudwatch.describe_alarms(AlarmNames=[outputs["Rate"]])["MetricAlarms"][0]
    assert [m["Id"] for m in math["Metrics"]] == ["rate", "errors", "total"]
    assert math["Metrics"][0]["Expression"] == "errors / total"
    listed = logs.describe_log_groups(logGroupNamePrefix="/aws/sagemaker/Endpoints/e")
    assert listed["logGroups"][0]["retentionInDays"] == 30

    plain["Properties"]["Threshold"] = 1
    del group["Properties"]["RetentionInDays"]
    assert stacks.update("monitoring", body) == "UPDATE_COMPLETE"
    alarm = cloudwatch.describe_alarms(AlarmNames=[outputs["Alarm"]])["MetricAlarms"][0]
    assert alarm["Threshold"] == 1.0
    listed = logs.describe_log_groups(logGroupNamePrefix="/aws/sagemaker/Endpoints/e")
    assert "retentionInDays" not in listed["logGroups"][0]

    assert stacks.create("conflict", template(Group=group)) == "ROLLBACK_COMPLETE"
    assert "already exists" in stacks.reason("conflict", "Group", "CREATE_FAILED")
    assert stacks.delete("monitoring") == "DELETE_COMPLETE"
    assert not cloudwatch.describe_alarms()["MetricAlarms"]


def test_a_log_group_takes_a_key_whose_policy_lets_cloudwatch_logs_use_it(stacks):
    kms, logs = stacks.client("kms"), stacks.client("logs")
    key = kms.create_key()["KeyMetadata"]["Arn"]

    def let_use(group: str) -> None:
        document = json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
        document["Statement"] += policy(
            Principal={"Service": "logs.eu-west-1.amazonaws.com"},
            Action=["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey*"],
            Resource="*",
            Condition={
                "ArnLike": {"kms:EncryptionContext:aws:logs:arn": ARN.format("logs", group)}
            },
        )["Statement"]
        kms.put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps(document))

    def encrypted_with() -> str | None:
        (group,) = logs.describe_log_groups(logGroupNamePrefix="/keyed")["logGroups"]
        return group.get("kmsKeyId")

    group = resource("AWS::Logs::LogGroup", LogGroupName="/keyed")
    body = template(Group=group)
    assert stacks.create("keyed", body) == "CREATE_COMPLETE"
    group["Properties"]["KmsKeyId"] = key
    refused = (
        "The specified KMS key does not exist or is not allowed to be used with Arn "
        f"'{ARN.format('logs', 'log-group:/keyed')}'"
    )
    # The default policy is for the account's own roles; then one for another log group; no key.
    assert stacks.update("keyed", body) == "UPDATE_ROLLBACK_COMPLETE"
    assert refused in stacks.reason("keyed", "Group", "UPDATE_FAILED")
    let_use("log-group:/other*")
    assert stacks.update("keyed", body) == "UPDATE_ROLLBACK_COMPLETE"
    group["Properties"]["KmsKeyId"] = ARN.format("kms", "key/0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d")
    assert stacks.update("keyed", body) == "UPDATE_ROLLBACK_COMPLETE"
    assert encrypted_with() is None

    let_use("log-group:/key*")
    group["Properties"]["KmsKeyId"] = key
    assert stacks.update("keyed", body) == "UPDATE_COMPLETE"
    assert encrypted_with() == key
    del group["Properties"]["KmsKeyId"]
    assert stacks.update("keyed", body) == "UPDATE_COMPLETE"
    assert encrypted_with() is None


def test_scaling(stacks):
    scaled = target(
        "endpoint/e/variant/main",
        MinCapacity="1",
        MaxCapacity=4,
        ScheduledActions=[
            {
                "ScheduledActionName": "day",
                "Schedule": "cron(0 7 ? * * *)",
                "Timezone": "Europe/Zurich",
                "ScalableTargetAction": {"MinCapacity": "2"},
            },
            {"ScheduledActionName": "night", "Schedule": "cron(0 19 ? * * *)"},
        ],
    )
    tracking = resource(
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        PolicyName="invocations",
        PolicyType="TargetTrackingScaling",
        ScalingTargetId={"Ref": "Target"},
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": "300",
            "ScaleInCooldown": 300,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
            },
        },
    )
    body = template({"Target": {"Ref": "Target"}}, Target=scaled, Policy=tracking)
    assert stacks.create("scaling", body) == "CREATE_COMPLETE"
    assert stacks.outputs("scaling")["Target"] == f"endpoint/e/variant/main|{INSTANCES}|sagemaker"
    scaling = stacks.client("application-autoscaling")
    shown = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"][0]
    assert shown["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 300.0

    def actions() -> list[list[Any]]:
        found = scaling.describe_scheduled_actions(ServiceNamespace="sagemaker")
        names = ("ScheduledActionName", "Schedule", "Timezone", "ScalableTargetAction")
        return [[item.get(name) for name in names] for item in found["ScheduledActions"]]

    assert actions() == [
        ["day", "cron(0 7 ? * * *)", "Europe/Zurich", {"MinCapacity": 2}],
        ["night", "cron(0 19 ? * * *)", None, None],
    ]
    scaled["Properties"]["ScheduledActions"].pop()
    scaled["Properties"]["ScheduledActions"][0]["Schedule"] = "cron(0 8 ? * * *)"
    scaled["Properties"]["MaxCapacity"] = 8
    assert stacks.update("scaling", body) == "UPDATE_COMPLETE"
    assert actions() == [["day", "cron(0 8 ? * * *)", "Europe/Zurich", {"MinCapacity": 2}]]
    known = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"][0]
    assert (known["MinCapacity"], known["MaxCapacity"]) == (1, 8)
    assert stacks.delete("scaling") == "DELETE_COMPLETE"
    assert not scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    assert actions() == []

    tracking["Properties"]["ScalingTargetId"] = f"endpoint/x/variant/y|{INSTANCES}|sagemaker"
    assert stacks.create("orphan", template(Policy=tracking)) == "ROLLBACK_COMPLETE"
    assert "No scalable target found" in stacks.reason("orphan", "Policy", "CREATE_FAILED")


def test_a_target_has_one_owner_and_is_not_made_anew(stacks):
    """A registered target cannot be created again, and one that went away cannot be changed."""
    owned = target("endpoint/owned/variant/main", MinCapacity=1, MaxCapacity=4)
    assert stacks.create("owned", template(Target=owned)) == "CREATE_COMPLETE"
    # CloudFormation would delete the target under its old logical id after this.
    assert stacks.update("owned", template(Renamed=owned)) == "UPDATE_ROLLBACK_COMPLETE"
    identifier = f"endpoint/owned/variant/main|{INSTANCES}|sagemaker"
    assert stacks.reason("owned", "Renamed", "CREATE_FAILED") == f"{identifier} already exists"
    stacks.client("application-autoscaling").deregister_scalable_target(
        ServiceNamespace="sagemaker",
        ResourceId="endpoint/owned/variant/main",
        ScalableDimension=INSTANCES,
    )
    owned["Properties"]["MaxCapacity"] = 8
    assert stacks.update("owned", template(Target=owned)) == "UPDATE_ROLLBACK_FAILED"
    assert "was not found" in stacks.reason("owned", "Target", "UPDATE_FAILED")
    assert stacks.delete("owned") == "DELETE_COMPLETE"
