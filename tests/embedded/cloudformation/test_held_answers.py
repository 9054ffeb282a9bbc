"""The CDK CLI asks for a stack every five seconds. Its question waits for the operation's end."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any
from unittest.mock import Mock

import pytest

from slipway.embedded_aws.api import ApiError, Caller
from slipway.embedded_aws.cloudformation import query_api
from slipway.embedded_aws.cloudformation.query_api import QueryApi
from slipway.embedded_aws.cloudformation.stack import OperationContext, Stack, StackStore, now
from slipway.embedded_aws.cloudformation.stack_contents import StackIdentity
from slipway.embedded_aws.identity import ACCOUNT_ID

REGION = "eu-west-1"
CDK_CLI = Caller(ACCOUNT_ID, REGION, "aws-cdk/2.1148.1 aws-sdk-js/3.1067.0 os/linux")
BOTO3 = Caller(ACCOUNT_ID, REGION, "Boto3/1.43.50 md/Botocore#1.43.50")
# Much longer than an answer takes, and much shorter than a question is held.
MOMENT_SECONDS = 0.2


@pytest.fixture
def stack() -> Stack:
    identity = StackIdentity("mine", "arn:of:mine", REGION, ACCOUNT_ID)
    return Stack(identity=identity, status="CREATE_IN_PROGRESS", created=now())


@pytest.fixture
def api(stack: Stack) -> QueryApi:
    store = StackStore()
    store.add(stack)
    # Nothing here reads a template.
    return QueryApi(OperationContext(Mock(), Mock(), store), Mock())


def status(api: QueryApi, caller: Caller) -> str:
    [found] = api.describe_stacks(caller, {"StackName": "mine"})["Stacks"]
    return str(found["StackStatus"])


def is_answered(question: "Future[Any]") -> bool:
    return bool(wait([question], MOMENT_SECONDS).done)


def test_the_question_is_answered_at_the_end_of_the_operation(api: QueryApi, stack: Stack) -> None:
    with ThreadPoolExecutor(1) as pool:
        question = pool.submit(status, api, CDK_CLI)
        assert not is_answered(question)
        # Every other program is told what goes on.
        assert status(api, BOTO3) == "CREATE_IN_PROGRESS"
        stack.set_status("ROLLBACK_IN_PROGRESS")
        assert not is_answered(question)
        stack.set_status("ROLLBACK_COMPLETE")
        assert question.result() == "ROLLBACK_COMPLETE"
    assert status(api, CDK_CLI) == "ROLLBACK_COMPLETE"


def test_a_stack_that_was_deleted_meanwhile_is_not_there(api: QueryApi, stack: Stack) -> None:
    stack.set_status("DELETE_IN_PROGRESS")
    with ThreadPoolExecutor(1) as pool:
        question = pool.submit(status, api, CDK_CLI)
        assert not is_answered(question)
        stack.set_status("DELETE_COMPLETE")
        with pytest.raises(ApiError, match="Stack with id mine does not exist"):
            question.result()


def test_nobody_waits_for_a_change_set_to_be_executed(api: QueryApi, stack: Stack) -> None:
    stack.set_status("REVIEW_IN_PROGRESS")
    assert status(api, CDK_CLI) == "REVIEW_IN_PROGRESS"


def test_a_long_operation_is_told_while_it_goes_on(
    api: QueryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_api, "_HELD_SECONDS", MOMENT_SECONDS)
    assert status(api, CDK_CLI) == "CREATE_IN_PROGRESS"
