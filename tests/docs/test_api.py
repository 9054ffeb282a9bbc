"""Programs of the pages about stacks of a team's own: each is synthesised as a reader copies it."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from tests.support import served_sample
from tests.support.accounts import embedded_aws
from tests.support.linting import lint
from tests.support.pages import ROOT, Block, blocks
from tests.support.stacks import Stacks
from tests.support.workbench import Workbench
from tests.synth.assemblies import Assembly, run_app

PAGES = [ROOT / "docs" / name for name in ("api.md", "guides/in-front.md")]
MODEL = "gpt2-autocomplete"
ENDPOINT = f"arn:aws:sagemaker:us-east-1:111122223333:endpoint/{MODEL}-ci"

pytestmark = [pytest.mark.size("all"), pytest.mark.timeout(300)]


def programs(page: Path, label: str = "app") -> list[Block]:
    return [each for each in blocks(page) if (each.language, *each.labels) == ("python", label)]


def synthesised(page: Path, number: int, folder: Path, environment: str = "ci") -> Assembly:
    """Synthesises a program of a page in a copy of the project, and lints it."""
    shutil.copy(ROOT / "environments.yaml", folder)
    shutil.copytree(ROOT / "model_configs", folder / "model_configs")
    (folder / "containers").symlink_to(ROOT / "containers")
    (folder / "app.py").write_text(programs(page)[number].text, "utf-8")
    (folder / "functions").mkdir()
    for block in programs(page, "function"):
        (folder / "functions" / "ask.py").write_text(block.text, "utf-8")
    context = {"env": environment, "models": MODEL, "allow-unpublished": "true"}
    with run_app(folder, folder / "cdk.out", {}, **context) as process:
        _, errors = process.communicate()
    assert process.returncode == 0, errors
    assembly = Assembly(folder / "cdk.out")
    files = [assembly.template_file(name) for name in assembly.stacks()]
    found = [match for matches in lint(files).values() for match in matches]
    # The CDK writes a function's role twice: as a reference, and as a dependency.
    assert [str(match) for match in found if match.rule.id != "W3005"] == []
    return assembly


def granted(assembly: Assembly, stack: str, service: str) -> list[Any]:
    """Returns what the roles of a stack may do on a service."""
    return [
        (statement["Action"], statement["Resource"])
        for policy in assembly.resources(stack, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if service in json.dumps(statement["Action"])
    ]


INVOKE = (["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"], ENDPOINT)


@pytest.mark.parametrize("number", range(len(programs(PAGES[0]))))
def test_a_program_of_the_api_is_an_app(number: int, tmp_path: Path) -> None:
    stacks = synthesised(PAGES[0], number, tmp_path).stacks()
    own = {0: set(), 1: {"callers"}, 2: {"writing"}}[number]
    assert {*stacks} - {"foundation", "image-tensorrt"} == own | ({MODEL} if number < 2 else set())


def test_a_queue_calls_one_endpoint_and_tries_again(tmp_path: Path) -> None:
    found = synthesised(PAGES[1], 0, tmp_path)
    assert granted(found, "completions", "sagemaker") == [INVOKE]
    assert MODEL not in found.stacks()["completions"]["dependencies"]
    mapping = found.only("completions", "AWS::Lambda::EventSourceMapping")["Properties"]
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    _, requests = found.named("completions", "AWS::SQS::Queue", "Requests")
    function = found.only("completions", "AWS::Lambda::Function")["Properties"]
    assert requests["Properties"]["VisibilityTimeout"] == 6 * function["Timeout"]
    assert requests["Properties"]["RedrivePolicy"]["maxReceiveCount"] == 3


def test_an_api_calls_one_endpoint_for_who_has_a_key(tmp_path: Path) -> None:
    found = synthesised(PAGES[1], 1, tmp_path)
    assert granted(found, "api", "sagemaker") == [INVOKE]
    method = found.only("api", "AWS::ApiGateway::Method")["Properties"]
    assert method["ApiKeyRequired"] is True
    uri = json.dumps(method["Integration"]["Uri"])
    assert f":runtime.sagemaker:path/endpoints/{MODEL}-ci/invocations" in uri
    codes = [each["StatusCode"] for each in method["Integration"]["IntegrationResponses"]]
    assert codes == [each["StatusCode"] for each in method["MethodResponses"]]
    plan = found.only("api", "AWS::ApiGateway::UsagePlan")["Properties"]
    assert (plan["Throttle"], plan["Quota"]["Period"]) == (
        {"BurstLimit": 20, "RateLimit": 10}, "DAY",
    )  # fmt: skip
    assert found.only("api", "AWS::ApiGateway::UsagePlanKey")


def test_the_api_deploys_on_the_embedded_aws_as_the_page_says(tmp_path: Path) -> None:
    (command,) = [each.text for each in blocks(PAGES[1]) if "--record" in each.text]
    recorded = re.findall("--record '(.+?)'", command)
    template = synthesised(PAGES[1], 1, tmp_path, "local").template("api")
    with embedded_aws(tmp_path / "aws", recorded=recorded) as server:
        stacks = Stacks(server, LoopbackClients(server.connection), "us-east-1")
        stacks.client("ssm").put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
        )
        assert stacks.create("api", template) == "CREATE_COMPLETE"
        assert stacks.delete("api") == "DELETE_COMPLETE"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """An embedded AWS that serves the sample."""
    with Workbench(tmp_path_factory.mktemp("queue")) as bench:
        served_sample.deploy(bench)
        served_sample.await_serving(bench)
        yield bench


CALL = """
import json, os, boto3
queues = boto3.client("sqs")
address = os.environ["ANSWERS_URL"] = queues.create_queue(QueueName="answers")["QueueUrl"]
import ask
bodies = {"good": '{"inputs": "Amazon S3 bucket"}', "wrong": '{"inputs": 7}'}
records = [{"messageId": name, "body": body} for name, body in bodies.items()]
result = ask.handler({"Records": records}, None)
[message] = queues.receive_message(QueueUrl=address, MaxNumberOfMessages=10)["Messages"]
print(json.dumps([result, json.loads(message["Body"])]))
"""


def test_the_function_answers_and_gives_back_what_failed(bench: Workbench) -> None:
    (program,) = programs(PAGES[1], "function")
    (bench.project / "ask.py").write_text(program.text, "utf-8")
    bench.environment["ENDPOINT_NAME"] = served_sample.ENDPOINT
    *told, last = bench.must("python", "-c", CALL).splitlines()
    result, [answer] = json.loads(last)
    assert result == {"batchItemFailures": [{"itemIdentifier": "wrong"}]}
    assert answer["generated_text"]
    assert any(line.startswith("wrong: ") for line in told)
