"""How one measurement corrects predictions of other loads and types."""

import math

import pytest

from slipway.sizing.facts import gpu_of
from slipway.sizing.latency import Server
from slipway.sizing.measured import Correction, settings_digest
from slipway.sizing.network import Network
from tests.unit.sizing.networks import LLAMA

A10G, L40S = gpu_of("ml.g5.xlarge"), gpu_of("ml.g6e.xlarge")
SERVER = Server(A10G, 1, "vllm")
NETWORK = Network.of(LLAMA, 2.0 * LLAMA.parameters, None)


def test_between_two_concurrencies_the_factor_changes_evenly():
    found = Correction.of("ml.g5.xlarge", SERVER, [(16, 8.0), (4, 1.0), (16, 2.0)])
    expected = {1: 1, 4: 1, 8: 2, 16: 4, 64: 4}
    assert {each: found.at(each) for each in expected} == pytest.approx(expected)


def test_it_covers_the_gpu_and_the_engine():
    found = Correction.of("ml.g5.xlarge", SERVER, [(1, 1.0)])
    assert found.covers(Server(A10G, 4, "vllm"))
    assert not found.covers(Server(L40S, 1, "vllm"))
    assert not found.covers(Server(A10G, 1, "tgi"))


def test_the_band_is_no_narrower_than_the_measurement():
    sure, unsure = (Correction("ml.g5.xlarge", SERVER, ((1, 1.0),), each) for each in (0.01, 0.9))
    same, other = (
        sure.band(NETWORK, name, SERVER, 1) for name in ("ml.g5.xlarge", "ml.g5.2xlarge")
    )
    assert 1 < same.factor < other.factor
    assert unsure.band(NETWORK, "ml.g5.xlarge", SERVER, 1).factor == pytest.approx(math.exp(0.9))


def test_settings_are_alike_in_every_bucket():
    one, other = ({"A": "1", "B": f"s3://{name}/x/"} for name in ("staging", "production"))
    assert settings_digest(one) == settings_digest(other) != settings_digest({"A": "2"})
