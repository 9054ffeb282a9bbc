"""An LMI endpoint of the embedded AWS, from the package in S3 to an update."""

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.endpoints import REGION, REGISTRY, Endpoint
from tests.support.accounts import embedded_aws

pytestmark = pytest.mark.djl_serving


@pytest.fixture
def clients(home, tmp_path_factory):
    programs = {"djl-inference": home.program}
    directory = tmp_path_factory.mktemp("aws")
    with embedded_aws(directory, programs=programs) as aws:
        clients = LoopbackClients(aws.connection)
        servers.put_weights(clients.client("s3", REGION))
        yield clients
        clients.close()


def test_an_endpoint_answers_and_is_updated_over_a_stand_in(clients, home):
    endpoint = Endpoint(clients)
    for name, tokens in (("first", 2), ("second", 3)):
        config = servers.config_for(home, "deepspeed", options={"max_new_tokens": tokens})
        endpoint.configure(
            name,
            f"{REGISTRY}/djl-inference:{home.version}",
            endpoint.put(servers.package_for(config), name),
            {"PYTHONPATH": servers.stand_in_path("deepspeed")},
        )
    old, new = ([{"generated_text": text}] for text in ("de", "def"))
    endpoint.create("first")
    assert endpoint.answer({"inputs": "abc"}) == old
    endpoint.update("second")
    while not endpoint.settled():
        # The old server answers until the new one is there, which runs beside it.
        assert endpoint.answer({"inputs": "abc"}) in (old, new)
    assert endpoint.settled()["EndpointConfigName"] == "second"
    assert endpoint.answer({"inputs": "abc"}) == new
