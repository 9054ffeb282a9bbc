"""From the alarm of a failing canary to its cause: one command, or two clicks, timed.

The new fleet passes its health checks and fails at requests. Run with `-s`, the test prints the
times that docs/operations.md has.
"""

import html
import json
import resource
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.clients import Clients
from tests.support.projects import DIGEST, LOCAL
from tests.support.rollouts import ROLLOUT_MODEL
from tests.support.slipway_stack import lay_foundation, publish_functions
from tests.support.stacks import Stacks
from tests.support.waiting import eventually
from tests.support.workbench import Workbench
from tests.synth.assemblies import ROOT

pytestmark = [pytest.mark.size("all"), pytest.mark.timeout(240)]

GOLDEN = ROOT / "tests" / "golden"
SAMPLE = ROOT / "samples" / "gpt2-autocomplete" / "model"
NAME = f"{ROLLOUT_MODEL}-local"
BROKEN = "cd" * 32
CAUSE = "indices element out of data bounds, idx=5000 must be within"
# On any machine: far above what is measured, and far below a search in the console.
MOST_SECONDS = 30


def publish(bench: Workbench, digest: str, *, is_broken: bool = False) -> None:
    """Publishes the sample; a broken one has a tokenizer that numbers a word past the network."""
    for file in SAMPLE.iterdir():
        data = file.read_bytes()
        if is_broken and file.name == "tokenizer.json":
            tokenizer = json.loads(data)
            tokenizer["model"]["vocab"]["The"] = 5000
            data = json.dumps(tokenizer).encode()
        key = f"artifacts/{digest}/files/{file.name}"
        bench.client("s3").put_object(Bucket=LOCAL.artifact_bucket, Key=key, Body=data)


@pytest.fixture(scope="module")
def undone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """An account with a canary that an alarm has undone, while requests go on."""
    with Workbench(tmp_path_factory.mktemp("bench")) as bench:
        config = GOLDEN / "cases" / f"{ROLLOUT_MODEL}.yaml"
        bench.config(ROLLOUT_MODEL).write_text(config.read_text("utf-8"), "utf-8")
        clients: Any = SimpleNamespace(client=lambda service, _: bench.client(service))
        stacks = Stacks(None, clients, LOCAL.region)
        lay_foundation(stacks)
        publish(bench, DIGEST)
        publish(bench, BROKEN, is_broken=True)
        template = json.loads((GOLDEN / "templates" / f"{ROLLOUT_MODEL}.json").read_text("utf-8"))
        for each in template["Resources"].values():
            if each["Type"] == "AWS::CloudWatch::Alarm":
                each["Properties"]["EvaluationPeriods"] = 1
        publish_functions(stacks, template)
        tags = {"slipway:environment": "local", "slipway:model": ROLLOUT_MODEL}
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        assert stacks.create(NAME, template, Tags=listed) == "CREATE_COMPLETE"
        runtime = bench.client("sagemaker-runtime")

        def ask() -> str:
            body = json.dumps({"inputs": "The"})
            try:
                runtime.invoke_endpoint(
                    EndpointName=NAME, ContentType="application/json", Body=body
                )
            except ClientError as error:
                return str(error.response["Error"]["Code"])
            return "answer"

        with Clients(ask, threads=2, pause_seconds=0.02) as clients:
            changed = json.loads(json.dumps(template).replace(DIGEST, BROKEN))
            stacks.start_update(NAME, changed, Tags=listed)
            eventually(lambda: clients.answers["ModelError"] >= 5)
            bench.must("slipway", "local", "pass-minutes", "1")
            assert stacks.settled(NAME) == "UPDATE_ROLLBACK_COMPLETE"
            before = clients.answers["answer"]
            eventually(lambda: clients.answers["answer"] >= before + 20)
        yield bench


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Prints how long something takes, and the processor time of the commands in it."""
    begin, used = time.monotonic(), _child_seconds()
    yield
    seconds = time.monotonic() - begin
    print(f"{what}: {seconds:.1f} s, commands used {_child_seconds() - used:.1f} s of a core")
    assert seconds < MOST_SECONDS


def _child_seconds() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def test_one_command_names_the_cause(undone):
    with timed("slipway status"):
        status = undone.run("slipway", "status", ROLLOUT_MODEL)
    assert status.returncode == 1
    verdict = " ".join(status.stdout.partition("\n\n")[0].split())
    alarm, cause = (
        verdict.index(each)
        for each in ("RolloutNewFleetServerErrorRate", "the new instances' log has: ")
    )
    assert alarm < cause < verdict.index(CAUSE)
    with timed("slipway logs --errors"):
        errors = undone.must("slipway", "logs", ROLLOUT_MODEL, "--errors")
    assert CAUSE in errors
    assert "INFO" not in errors


def test_the_page_names_the_cause(undone):
    """The clicks: the address that the command prints, and the model in the fleet."""
    process = undone.popen("slipway", "ui", "--no-open")
    try:
        process.stdout.readline()
        address = process.stdout.readline().strip()
        read = reader(address)
        with timed("slipway ui, from the address to the cause"):
            read(address)
            read("/")
            fleet = read("/parts/fleet")
            assert f'href="/models/{ROLLOUT_MODEL}"' in fleet
            assert "look at it" in fleet
            read(f"/models/{ROLLOUT_MODEL}")
            assert CAUSE in read(f"/models/{ROLLOUT_MODEL}/status")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def reader(address: str) -> Callable[[str], str]:
    """Returns what reads an address as a browser does: with its cookie."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    origin = address.partition("/?")[0]

    def read(path: str) -> str:
        url = path if path.startswith("http") else origin + path
        with opener.open(url, timeout=30) as answer:
            return html.unescape(answer.read().decode())

    return read
