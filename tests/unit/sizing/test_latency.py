"""The roofline: what makes a request longer, and what bounds it."""

from dataclasses import replace

import pytest

from slipway.config.sections.model import Model
from slipway.sizing.facts import band_of, constants, gpu_of, unmeasured
from slipway.sizing.latency import Load, Server, request_times
from slipway.sizing.network import Network
from tests.unit.sizing.networks import GPT_OSS, LLAMA

DENSE = Network.of(LLAMA, 2 * LLAMA.parameters, None)
EXPERTS = Network.of(GPT_OSS, 13.76e9, "mxfp4")
ALONE = Load(1, 200, 100)


def server(instance_type, degree=1, engine="vllm"):
    return Server(gpu_of(instance_type), degree, engine)


def times(network, where, load=ALONE, **changed):
    return request_times(network, where, load, {**constants(), **changed})


def test_a_request_is_its_first_token_and_the_others():
    found = times(DENSE, server("ml.g5.xlarge"))
    assert found.request == pytest.approx(found.first_token + 99 * found.per_token)


def test_no_step_is_faster_than_the_memory():
    gpu = gpu_of("ml.g5.xlarge")
    least = DENSE.shared_bytes / gpu.bytes_per_second
    assert times(DENSE, server("ml.g5.xlarge")).per_token > least


def test_more_clients_take_longer_each_and_answer_more_together():
    seconds = [times(DENSE, server("ml.g6e.xlarge"), replace(ALONE, concurrency=n)) for n in (1, 8)]
    assert seconds[0].request < seconds[1].request < 8 * seconds[0].request


def test_a_longer_prompt_delays_the_first_token():
    where = server("ml.g5.xlarge")
    longer = times(DENSE, where, replace(ALONE, input_tokens=2000))
    assert longer.first_token > 3 * times(DENSE, where).first_token
    kept = times(DENSE, where, replace(ALONE, input_tokens=2000, new_tokens=16))
    assert kept.first_token < longer.first_token / 3


def test_a_link_of_no_time_leaves_a_copy_on_four_gpus_a_quarter_of_the_weights():
    free = {"pcie_seconds": 0.0, "pcie_bytes_per_second": 1e30}
    ideal = times(DENSE, server("ml.g5.12xlarge", 4), **free)
    real = times(DENSE, server("ml.g5.12xlarge", 4))
    assert ideal.per_token < real.per_token
    assert ideal.per_token == pytest.approx(
        times(DENSE, server("ml.g5.xlarge")).per_token / 4, rel=0.3
    )


def test_nvlink_is_faster_than_pcie():
    gpu = gpu_of("ml.p4d.24xlarge")
    long = replace(ALONE, input_tokens=4000)
    fast = times(DENSE, Server(gpu, 8, "vllm"), long)
    slow = times(DENSE, Server(replace(gpu, link="pcie"), 8, "vllm"), long)
    assert fast.first_token < slow.first_token


def test_packed_experts_are_slower_where_the_gpu_unpacks_them():
    # Ten times the bandwidth would not tell both apart.
    old, new = server("ml.g5.xlarge"), server("ml.g6e.xlarge")
    load = replace(ALONE, concurrency=16)
    packed = times(EXPERTS, old, load).request / times(EXPERTS, new, load).request
    plain = times(DENSE, old, load).request / times(DENSE, new, load).request
    assert packed > 2 * plain


def test_another_size_of_memory_is_another_gpu():
    assert gpu_of("ml.p4d.24xlarge").product == "NVIDIA A100"
    assert gpu_of("ml.p4de.24xlarge") is None
    assert gpu_of("ml.g4dn.xlarge") is None


def test_an_engine_without_rows_is_unknown():
    assert unmeasured(server("ml.g5.xlarge")) is None
    assert unmeasured(server("ml.g5.xlarge", engine="trtllm")) == "no measurement is of trtllm"


@pytest.mark.parametrize(
    ("instance_type", "degree", "concurrency", "basis"),
    [
        ("ml.g5.12xlarge", 4, 30, "measured nearby"),
        ("ml.g5.12xlarge", 4, 61, "extrapolated"),
        ("ml.g5.12xlarge", 2, 30, "extrapolated"),
        ("ml.g6e.12xlarge", 4, 8, "extrapolated"),
    ],
)
def test_a_band_says_whether_a_row_is_nearby(instance_type, degree, concurrency, basis):
    found = band_of(EXPERTS, server(instance_type, degree), concurrency)
    assert found.basis == basis
    assert found.factor > 1


def test_an_extrapolated_band_is_wider():
    near = band_of(EXPERTS, server("ml.g5.12xlarge", 4), 8)
    assert band_of(EXPERTS, server("ml.g6e.12xlarge", 4), 8).factor > near.factor


def test_fp8_is_plain_weights_of_one_byte_and_never_near():
    model = Model.model_validate({**LLAMA.model_dump(), "quantization": "fp8"})
    half = Network.of(model, 1.05 * model.parameters, "fp8")
    where = server("ml.g6e.xlarge")
    assert times(half, where).per_token < 0.7 * times(DENSE, where).per_token
    assert band_of(half, where, 1).basis == "extrapolated"
