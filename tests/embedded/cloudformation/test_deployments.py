"""The order of events of every kind of deployment, and what is left when one fails."""

import itertools
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.embedded.cloudformation.templates import policy, resource, template


def group(name: str | None = None, **attributes: Any) -> dict[str, Any]:
    """A log group: cheap, nameable, and replaced when its name changes."""
    properties = {"LogGroupName": name} if name else {}
    return {**resource("AWS::Logs::LogGroup", **properties), **attributes}


def parameter(value: Any, **attributes: Any) -> dict[str, Any]:
    return {**resource("AWS::SSM::Parameter", Type="String", Value=value), **attributes}


def broken(**attributes: Any) -> dict[str, Any]:
    """A resource that its service refuses."""
    alias = resource("AWS::KMS::Alias", AliasName="alias/broken", TargetKeyId="missing")
    return {**alias, **attributes}


def topic_policy(*topics: Any) -> dict[str, Any]:
    document = {"Version": "2012-10-17", "Statement": []}
    return resource("AWS::SNS::TopicPolicy", Topics=list(topics), PolicyDocument=document)


def told(name: str, kind: str, begun: int = 1) -> list[str]:
    """The events of a resource; one that is made is told twice to be in progress."""
    return [f"{name} {kind}_IN_PROGRESS"] * begun + [f"{name} {kind}_COMPLETE"]


def log_groups(stacks: Any, prefix: str) -> list[str]:
    found = stacks.client("logs").describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
    return [item["logGroupName"] for item in found]


def test_creation_follows_dependencies_and_deletion_goes_back(stacks):
    body = template(
        C=parameter({"Ref": "B"}),
        A=group("order/a"),
        B=parameter({"Fn::GetAtt": ["A", "Arn"]}),
        D=parameter("x", DependsOn="C"),
    )
    assert stacks.create("order", body) == "CREATE_COMPLETE"
    made = [line for line in stacks.history("order") if "CREATE_COMPLETE" in line]
    assert made == [f"{name} CREATE_COMPLETE" for name in ("A", "B", "C", "D", "*")]
    assert stacks.history("order")[:4] == [
        "* CREATE_IN_PROGRESS",
        *told("A", "CREATE", begun=2),
    ]
    assert stacks.reason("order", "A", "CREATE_IN_PROGRESS") == "Resource creation Initiated"
    assert stacks.reason("order", "order", "CREATE_IN_PROGRESS") == "User Initiated"

    stack_id = stacks.describe("order")["StackId"]
    assert stacks.delete("order") == "DELETE_COMPLETE"
    gone = [line for line in stacks.history(stack_id) if "DELETE_COMPLETE" in line]
    assert gone == [f"{name} DELETE_COMPLETE" for name in ("D", "C", "B", "A", "*")]
    with pytest.raises(ClientError, match="Stack with id order does not exist"):
        stacks.describe("order")
    with pytest.raises(ClientError, match=r"Stack \[order\] does not exist"):
        stacks.events("order")
    summaries = stacks.api.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]
    assert stack_id in [summary["StackId"] for summary in summaries]


def test_failed_creation_rolls_back(stacks):
    body = template(
        First=group("fails/first"),
        Bad=broken(DependsOn="First"),
        Never=parameter("x", DependsOn="Bad"),
    )
    assert stacks.create("fails", body) == "ROLLBACK_COMPLETE"
    assert stacks.history("fails") == [
        "* CREATE_IN_PROGRESS",
        *told("First", "CREATE", begun=2),
        "Bad CREATE_IN_PROGRESS",
        "Bad CREATE_FAILED",
        "* ROLLBACK_IN_PROGRESS",
        "Bad DELETE_COMPLETE",
        *told("First", "DELETE"),
        "* ROLLBACK_COMPLETE",
    ]
    assert "NotFoundException" in stacks.reason("fails", "Bad", "CREATE_FAILED")
    reason = stacks.reason("fails", "fails", "ROLLBACK_IN_PROGRESS")
    assert reason == (
        "The following resource(s) failed to create: [Bad]. Rollback requested by user."
    )
    assert log_groups(stacks, "fails/") == []
    with pytest.raises(ClientError, match="is in ROLLBACK_COMPLETE state and can not be updated"):
        stacks.update("fails", body)
    assert stacks.delete("fails") == "DELETE_COMPLETE"


def test_failure_without_rollback_can_be_continued(stacks):
    body = template(First=group("keeps/first"), Bad=broken(DependsOn="First"))
    assert stacks.create("keeps", body, DisableRollback=True) == "CREATE_FAILED"
    assert log_groups(stacks, "keeps/") == ["keeps/first"]
    fixed = template(First=group("keeps/first"), Key={"Type": "AWS::KMS::Key"}, Bad=broken())
    fixed["Resources"]["Bad"]["Properties"]["TargetKeyId"] = {"Ref": "Key"}
    assert stacks.update("keeps", fixed, DisableRollback=True) == "UPDATE_COMPLETE"
    key = stacks.client("kms").describe_key(KeyId="alias/broken")["KeyMetadata"]["KeyId"]
    assert key == stacks.physical_id("keeps", "Key")
    assert log_groups(stacks, "keeps/") == ["keeps/first"]
    assert stacks.delete("keeps") == "DELETE_COMPLETE"


def test_failure_without_rollback_can_be_rolled_back(stacks):
    body = template(First=group("paused/first"), Bad=broken(DependsOn="First"))
    assert stacks.create("paused", body, DisableRollback=True) == "CREATE_FAILED"
    stacks.api.rollback_stack(StackName="paused")
    assert stacks.settled("paused") == "ROLLBACK_COMPLETE"
    assert log_groups(stacks, "paused/") == []

    good = template(First=group("paused2/first"))
    assert stacks.create("paused2", good) == "CREATE_COMPLETE"
    bad = template(First=group("paused2/second"), Bad=broken(DependsOn="First"))
    assert stacks.update("paused2", bad, DisableRollback=True) == "UPDATE_FAILED"
    assert log_groups(stacks, "paused2/") == ["paused2/first", "paused2/second"]
    stacks.api.rollback_stack(StackName="paused2")
    assert stacks.settled("paused2") == "UPDATE_ROLLBACK_COMPLETE"
    assert log_groups(stacks, "paused2/") == ["paused2/first"]


def test_a_second_try_drops_what_the_first_one_made(stacks):
    assert stacks.create("retry", template(First=group("retry/1"))) == "CREATE_COMPLETE"
    worse = template(First=group("retry/2"), New=group("retry/new"), Bad=broken(DependsOn="New"))
    worse["Resources"]["New"]["DependsOn"] = "First"
    assert stacks.update("retry", worse, DisableRollback=True) == "UPDATE_FAILED"
    assert log_groups(stacks, "retry/") == ["retry/1", "retry/2", "retry/new"]
    better = template(First=group("retry/3"))
    assert stacks.update("retry", better, DisableRollback=True) == "UPDATE_COMPLETE"
    assert log_groups(stacks, "retry/") == ["retry/3"]


def test_on_failure_delete(stacks):
    body = json.dumps(template(Bad=broken()))
    made = stacks.api.create_stack(StackName="x", TemplateBody=body, OnFailure="DELETE")
    assert stacks.settled(made["StackId"]) == "DELETE_COMPLETE"


def test_replacement_makes_the_new_one_first_and_deletes_the_old_one_last(stacks):
    body = template(Old=group("swap/one"), User=parameter({"Ref": "Old"}), Gone=group("swap/gone"))
    assert stacks.create("swap", body) == "CREATE_COMPLETE"
    user = stacks.physical_id("swap", "User")
    body = template(Old=group("swap/two"), User=parameter({"Ref": "Old"}))
    assert stacks.update("swap", body) == "UPDATE_COMPLETE"
    assert stacks.history("swap", since="UPDATE_IN_PROGRESS") == [
        "* UPDATE_IN_PROGRESS",
        *told("Old", "UPDATE", begun=2),
        *told("User", "UPDATE"),
        "* UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        *told("Old", "DELETE"),
        *told("Gone", "DELETE"),
        "* UPDATE_COMPLETE",
    ]
    assert log_groups(stacks, "swap/") == ["swap/two"]
    assert stacks.physical_id("swap", "User") == user
    value = stacks.client("ssm").get_parameter(Name=user)["Parameter"]["Value"]
    assert value == "swap/two"


def test_failed_update_goes_back(stacks):
    body = template(
        {"Value": {"Fn::GetAtt": ["Changed", "Value"]}},
        Replaced=group("back/one"),
        Changed=parameter({"Fn::Sub": "${Replaced} 1"}),
        Removed=group("back/removed"),
        Same=parameter("same"),
    )
    assert stacks.create("back", body) == "CREATE_COMPLETE"
    before = stacks.api.list_stack_resources(StackName="back")["StackResourceSummaries"]
    worse = template(
        Replaced=group("back/two"),
        Changed=parameter({"Fn::Sub": "${Replaced} 2"}),
        Same=parameter("same"),
        Added=group("back/added", DependsOn="Changed"),
        Bad=broken(DependsOn="Added"),
    )
    assert stacks.update("back", worse) == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.history("back", since="UPDATE_IN_PROGRESS") == [
        "* UPDATE_IN_PROGRESS",
        *told("Replaced", "UPDATE", begun=2),
        *told("Changed", "UPDATE"),
        *told("Added", "CREATE", begun=2),
        "Bad CREATE_IN_PROGRESS",
        "Bad CREATE_FAILED",
        "* UPDATE_ROLLBACK_IN_PROGRESS",
        "Replaced UPDATE_COMPLETE",
        *told("Changed", "UPDATE"),
        "* UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
        "Bad DELETE_COMPLETE",
        *told("Added", "DELETE"),
        *told("Replaced", "DELETE"),
        "* UPDATE_ROLLBACK_COMPLETE",
    ]
    reason = stacks.reason("back", "back", "UPDATE_ROLLBACK_IN_PROGRESS")
    assert reason == "The following resource(s) failed to create: [Bad]."
    after = stacks.api.list_stack_resources(StackName="back")["StackResourceSummaries"]
    identities = [(item["LogicalResourceId"], item["PhysicalResourceId"]) for item in before]
    assert [(i["LogicalResourceId"], i["PhysicalResourceId"]) for i in after] == identities
    assert log_groups(stacks, "back/") == ["back/one", "back/removed"]
    assert stacks.outputs("back") == {"Value": "back/one 1"}
    shown = stacks.api.get_template(StackName="back")["TemplateBody"]
    assert "Added" not in shown["Resources"]
    # The stack is as good as new: the same change without the mistake works.
    del worse["Resources"]["Bad"]
    assert stacks.update("back", worse) == "UPDATE_COMPLETE"
    assert log_groups(stacks, "back/") == ["back/added", "back/two"]
    assert stacks.delete("back") == "DELETE_COMPLETE"


def test_failed_change_in_place_gets_its_old_properties_again(stacks):
    def topic(name: str) -> dict[str, Any]:
        # SNS takes the first attribute and refuses the second: the change is half done.
        named = resource("AWS::SNS::Topic", DisplayName=name)
        return template(Topic=named, Policy=topic_policy({"Ref": "Topic"}))

    body = topic("one")
    assert stacks.create("half", body) == "CREATE_COMPLETE"
    arn = stacks.physical_id("half", "Topic")
    body = topic("two")
    body["Resources"]["Policy"]["Properties"]["Topics"].append(f"{arn}-missing")
    assert stacks.update("half", body) == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.history("half", since="UPDATE_ROLLBACK_IN_PROGRESS") == [
        "* UPDATE_ROLLBACK_IN_PROGRESS",
        *told("Topic", "UPDATE"),
        *told("Policy", "UPDATE"),
        "* UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
        "* UPDATE_ROLLBACK_COMPLETE",
    ]
    reason = stacks.reason("half", "half", "UPDATE_ROLLBACK_IN_PROGRESS")
    assert reason == "The following resource(s) failed to update: [Policy]."
    attributes = stacks.client("sns").get_topic_attributes(TopicArn=arn)["Attributes"]
    assert attributes["DisplayName"] == "one"


def test_a_failed_rollback_can_be_continued(stacks):
    sns = stacks.client("sns")
    topics = [sns.create_topic(Name=name)["TopicArn"] for name in ("first", "second")]
    assert stacks.create("stuck", template(Policy=topic_policy(topics[0]))) == "CREATE_COMPLETE"
    sns.delete_topic(TopicArn=topics[0])
    worse = template(Policy=topic_policy(topics[1]), Bad=broken(DependsOn="Policy"))
    assert stacks.update("stuck", worse) == "UPDATE_ROLLBACK_FAILED"
    reason = stacks.reason("stuck", "stuck", "UPDATE_ROLLBACK_FAILED")
    assert reason == "The following resource(s) failed to update: [Policy]."
    with pytest.raises(ClientError, match="is in UPDATE_ROLLBACK_FAILED state"):
        stacks.update("stuck", worse)
    stacks.api.continue_update_rollback(StackName="stuck")
    assert stacks.settled("stuck") == "UPDATE_ROLLBACK_FAILED"
    stacks.api.continue_update_rollback(StackName="stuck", ResourcesToSkip=["Policy"])
    assert stacks.settled("stuck") == "UPDATE_ROLLBACK_COMPLETE"

    # Each is an operation, a rollback too, and the CDK CLI tells events apart by it.
    operations = list(dict.fromkeys(event["OperationId"] for event in stacks.events("stuck")))
    failed = []
    for operation in operations:
        only = {"OperationId": operation, "Filters": {"FailedEvents": True}}
        found = stacks.api.describe_events(**only)["OperationEvents"]
        failed.append([(each["OperationType"], each["LogicalResourceId"]) for each in found])
    again = [("CONTINUE_ROLLBACK", "stuck"), ("CONTINUE_ROLLBACK", "Policy")]
    undone = [("ROLLBACK", "stuck"), ("ROLLBACK", "Policy")]
    assert failed == [[], [("UPDATE_STACK", "Bad")], undone, again, []]
    assert stacks.delete("stuck") == "DELETE_COMPLETE"


def test_a_named_resource_is_not_replaced(stacks):
    role = resource(
        "AWS::IAM::Role", RoleName="named", Path="/one/", AssumeRolePolicyDocument=policy()
    )
    assert stacks.create("named", template(Role=role)) == "CREATE_COMPLETE"
    role["Properties"]["Path"] = "/two/"
    assert stacks.update("named", template(Role=role)) == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.reason("named", "Role", "UPDATE_FAILED") == (
        "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
        "Rename named and update the stack again."
    )
    assert stacks.delete("named") == "DELETE_COMPLETE"


def test_retained_resources_outlive_their_stack(stacks):
    kept = group("kept/one", DeletionPolicy="Retain", UpdateReplacePolicy="Retain")
    except_on_create = group("kept/except", DeletionPolicy="RetainExceptOnCreate")
    body = template(Kept=kept, Except=except_on_create, Plain=group("kept/plain"))
    assert stacks.create("kept", body) == "CREATE_COMPLETE"
    kept["Properties"]["LogGroupName"] = "kept/two"
    assert stacks.update("kept", body) == "UPDATE_COMPLETE"
    assert "Kept DELETE_SKIPPED" in stacks.history("kept")
    stack_id = stacks.describe("kept")["StackId"]
    assert stacks.delete("kept") == "DELETE_COMPLETE"
    assert log_groups(stacks, "kept/") == ["kept/except", "kept/one", "kept/two"]
    assert stacks.history(stack_id, since="DELETE_IN_PROGRESS") == [
        "* DELETE_IN_PROGRESS",
        *told("Plain", "DELETE"),
        "Except DELETE_SKIPPED",
        "Kept DELETE_SKIPPED",
        "* DELETE_COMPLETE",
    ]


def test_a_rolled_back_creation_keeps_what_is_retained(stacks):
    body = template(
        Kept=group("rolled/kept", DeletionPolicy="Retain"),
        Except=group("rolled/except", DeletionPolicy="RetainExceptOnCreate"),
        Bad=broken(DependsOn=["Kept", "Except"]),
    )
    assert stacks.create("rolled", body) == "ROLLBACK_COMPLETE"
    assert log_groups(stacks, "rolled/") == ["rolled/kept"]


def test_stacks_are_deployed_at_the_same_time(stacks):
    resources = {f"P{i}": parameter("x", DependsOn=f"P{i - 1}") for i in range(1, 60)}
    body = template(P0=parameter("x"), **resources)
    names = ("left", "right")
    for name in names:
        stacks.start_create(name, body)
    spans = []
    for name in names:
        assert stacks.settled(name) == "CREATE_COMPLETE"
        times = [event["Timestamp"] for event in stacks.events(name)]
        spans.append((min(times), max(times)))
    assert spans[0][0] < spans[1][1]
    assert spans[1][0] < spans[0][1]


def test_events_are_paged_newest_first(stacks):
    resources = {f"P{index}": parameter(str(index)) for index in range(40)}
    assert stacks.create("paged", template(**resources)) == "CREATE_COMPLETE"
    first = stacks.api.describe_stack_events(StackName="paged")
    assert first["StackEvents"][0]["ResourceStatus"] == "CREATE_COMPLETE"
    assert first["StackEvents"][0]["LogicalResourceId"] == "paged"
    assert "NextToken" in first
    times = [event["Timestamp"] for event in stacks.events("paged")]
    assert len(times) == 40 * 3 + 2
    assert all(earlier < later for earlier, later in itertools.pairwise(times))


def test_an_export_in_use_is_kept(stacks):
    exporter = template(Group=group("exported"))
    exporter["Outputs"] = {"Name": {"Value": {"Ref": "Group"}, "Export": {"Name": "the-group"}}}
    importer = template(User=parameter({"Fn::ImportValue": "the-group"}))
    with pytest.raises(ClientError, match="No export named the-group found"):
        stacks.create("importer", importer)
    assert stacks.create("exporter", exporter) == "CREATE_COMPLETE"
    assert stacks.create("importer", importer) == "CREATE_COMPLETE"
    assert stacks.create("exporter2", exporter) == "ROLLBACK_COMPLETE"
    exports = stacks.api.list_exports()["Exports"]
    assert [(item["Name"], item["Value"]) for item in exports] == [("the-group", "exported")]
    assert stacks.api.list_imports(ExportName="the-group")["Imports"] == ["importer"]
    assert stacks.delete("exporter") == "DELETE_FAILED"
    assert "Cannot delete export the-group as it is in use by importer" in str(
        stacks.describe("exporter")["StackStatusReason"]
    )
    assert stacks.delete("importer") == "DELETE_COMPLETE"
    assert stacks.delete("exporter") == "DELETE_COMPLETE"


def test_an_output_that_another_stack_reads_may_change_and_go(stacks):
    def producer(name: str) -> dict[str, Any]:
        return template(Group=group(name)) | {"Outputs": {"Name": {"Value": {"Ref": "Group"}}}}

    output = {"StackName": "producer", "OutputName": "Name", "Region": stacks.region}
    consumer = template(User=parameter({"Fn::GetStackOutput": output}))
    with pytest.raises(ClientError, match="Stack producer has no output Name"):
        stacks.create("consumer", consumer)
    assert stacks.create("producer", producer("read")) == "CREATE_COMPLETE"
    role = parameter({"Fn::GetStackOutput": output | {"RoleArn": "arn:aws:iam::1:role/other"}})
    with pytest.raises(ClientError, match="takes StackName, OutputName and Region here"):
        stacks.create("foreign", template(User=role))
    assert stacks.create("consumer", consumer) == "CREATE_COMPLETE"
    assert stacks.update("producer", producer("read-anew")) == "UPDATE_COMPLETE"
    assert stacks.update("consumer", consumer) == "UPDATE_COMPLETE"
    name = stacks.physical_id("consumer", "User")
    found = stacks.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    assert found == "read-anew"
    assert stacks.delete("producer") == "DELETE_COMPLETE"
    assert stacks.delete("consumer") == "DELETE_COMPLETE"


def test_termination_protection(stacks):
    body = template(Group=group("protected"))
    assert stacks.create("protected", body, EnableTerminationProtection=True) == "CREATE_COMPLETE"
    with pytest.raises(ClientError, match="TerminationProtection is enabled"):
        stacks.delete("protected")
    off = {"StackName": "protected", "EnableTerminationProtection": False}
    stacks.api.update_termination_protection(**off)
    assert stacks.delete("protected") == "DELETE_COMPLETE"
    # What is gone, or never was, can be deleted as often as one likes.
    for name in ("protected", "never-was"):
        stacks.api.delete_stack(StackName=name)


def test_types_that_are_recorded_on_request_are_deployed_without_effect(stacks):
    def body(name: str) -> str:
        return template(
            Service=resource("AWS::AppRunner::Service", ServiceName=name),
            Arn=parameter({"Fn::GetAtt": ["Service", "ServiceArn"]}),
            Url=parameter({"Fn::Sub": "${Service.ServiceUrl}"}),
        )

    assert stacks.create("recorded", body("one")) == "CREATE_COMPLETE"
    listed = stacks.api.list_stack_resources(StackName="recorded")["StackResourceSummaries"]
    found = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in listed}
    values = stacks.client("ssm").get_parameters(Names=[found["Arn"], found["Url"]])["Parameters"]
    account, service = "123456789012", found["Service"]
    assert {each["Value"] for each in values} == {
        f"arn:aws:apprunner:eu-west-1:{account}:{service}",
        f"{service}-ServiceUrl",
    }
    assert stacks.update("recorded", body("two")) == "UPDATE_COMPLETE"
    assert stacks.delete("recorded") == "DELETE_COMPLETE"
