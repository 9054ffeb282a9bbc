"""Endpoints with a network, keys, data capture and queues, imported from their live state.

`test_golden_stacks.py` imports the endpoints that need nothing of their own in the account.
"""

import json

import pytest

from slipway.deployed.reader import read_endpoint
from slipway.rights.commands import import_policy
from tests.support.golden_cases import plan_content
from tests.support.imported_endpoints import told
from tests.support.networks import make_network
from tests.support.projects import LOCAL
from tests.support.recorded_calls import RecordedCalls
from tests.support.slipway_stack import SlipwayStack, golden_template, publish_functions

pytestmark = pytest.mark.size("all")


def network_ids(stack: SlipwayStack) -> dict[str, str]:
    """Makes a network; returns its ids by those of the golden case."""
    network = make_network(stack.stacks.client("ec2"))
    network.connect_s3()
    made = (*network.subnet_ids, network.group("imports"))
    return dict(zip(("subnet-0a1b2c3d", "subnet-4e5f6a7b", "sg-0a1b2c3d"), made, strict=True))


def volume_key(stack: SlipwayStack) -> dict[str, str]:
    return {"0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d": _key(stack)}


def capture_place(stack: SlipwayStack) -> dict[str, str]:
    stack.stacks.client("s3").create_bucket(Bucket="my-capture")
    return {"1234abcd-12ab-34cd-56ef-1234567890ab": _key(stack)}


def queue_place(stack: SlipwayStack) -> dict[str, str]:
    for bucket in ("my-requests", "my-answers"):
        stack.stacks.client("s3").create_bucket(Bucket=bucket)
    for topic in ("answers", "failures"):
        stack.stacks.client("sns").create_topic(Name=topic)
    golden = (
        "0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d",
        "1234abcd-12ab-34cd-56ef-1234567890ab",
        "2345bcde-12ab-34cd-56ef-1234567890ab",
    )
    return {name: _key(stack) for name in golden}


def queue_of_zero(stack: SlipwayStack) -> dict[str, str]:
    queue_place(stack)
    return {}


def _key(stack: SlipwayStack) -> str:
    key: str = stack.stacks.client("kms").create_key()["KeyMetadata"]["KeyId"]
    return key


@pytest.mark.parametrize(
    ("case", "make"),
    [("vpc", network_ids), ("scale-to-zero-vpc", network_ids), ("volume-key", volume_key),
     ("data-capture", capture_place), ("async", queue_place), ("async-from-zero", queue_of_zero)],
)  # fmt: skip
def test_its_import_gives_the_same_plan(stack, imported, case, make):
    texts = [json.dumps(plan_content(case)), golden_template(case)]
    digest = stack.publish("ok")
    for golden, made in {**make(stack), "ab" * 32: digest}.items():
        texts = [text.replace(golden, made) for text in texts]
    plan, template = map(json.loads, texts)
    publish_functions(stack.stacks, template)
    name = plan["endpoint_name"]
    assert stack.stacks.create(name, template) == "CREATE_COMPLETE"
    assert imported(stack.stacks, plan) == told(plan)
    recorded = RecordedCalls(stack.access, f"{LOCAL.region}:{LOCAL.account}")
    read_endpoint(stack.access.client, name, LOCAL.region)
    assert recorded.denied_by(import_policy(LOCAL, name)) == set()
    assert stack.stacks.delete(name) == "DELETE_COMPLETE"
