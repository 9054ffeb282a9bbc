"""What predicts a request: the network, the roofline, and one measurement that corrects it."""

import math
from dataclasses import replace

import pytest

from slipway.config.sections.model import Model
from slipway.sizing.facts import band_of, constants, gpu_of, unmeasured
from slipway.sizing.latency import Load, Server, request_times
from slipway.sizing.measured import Correction, settings_digest
from slipway.sizing.network import Network, UnknownShapeError

LLAMA = Model(
    family="llama",
    parameters=6_738_415_616,
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    vocabulary_size=32_000,
    tied_embeddings=False,
)
GPT_OSS = Model(
    family="gpt_oss",
    parameters=20_914_757_184,
    layers=24,
    hidden_size=2880,
    attention_heads=64,
    key_value_heads=8,
    head_size=64,
    sliding_window=128,
    windowed_layers=12,
    experts=32,
    active_experts=4,
    vocabulary_size=201_088,
    tied_embeddings=False,
)
DENSE = Network.of(LLAMA, 2 * LLAMA.parameters, None)
EXPERTS = Network.of(GPT_OSS, 13.76e9, "mxfp4")
ALONE = Load(1, 200, 100)


def server(instance_type, degree=1, engine="vllm"):
    return Server(gpu_of(instance_type), degree, engine)


def times(network, where, load=ALONE, **changed):
    return request_times(network, where, load, {**constants(), **changed})


def test_no_step_is_faster_than_the_memory_and_a_request_is_its_tokens():
    found = times(DENSE, server("ml.g5.xlarge"))
    assert found.request == pytest.approx(found.first_token + 99 * found.per_token)
    gpu = gpu_of("ml.g5.xlarge")
    least = DENSE.shared_bytes / gpu.bytes_per_second
    assert times(DENSE, server("ml.g5.xlarge")).per_token > least


def test_more_clients_and_longer_prompts_take_longer():
    seconds = [times(DENSE, server("ml.g6e.xlarge"), replace(ALONE, concurrency=n)) for n in (1, 8)]
    assert seconds[0].request < seconds[1].request < 8 * seconds[0].request
    where = server("ml.g5.xlarge")
    longer = times(DENSE, where, replace(ALONE, input_tokens=2000))
    assert longer.first_token > 3 * times(DENSE, where).first_token
    kept = times(DENSE, where, replace(ALONE, input_tokens=2000, new_tokens=16))
    assert kept.first_token < longer.first_token / 3


def test_links_have_their_time():
    free = {"pcie_seconds": 0.0, "pcie_bytes_per_second": 1e30}
    ideal = times(DENSE, server("ml.g5.12xlarge", 4), **free)
    real = times(DENSE, server("ml.g5.12xlarge", 4))
    assert ideal.per_token < real.per_token
    assert ideal.per_token == pytest.approx(
        times(DENSE, server("ml.g5.xlarge")).per_token / 4, rel=0.3
    )
    gpu = gpu_of("ml.p4d.24xlarge")
    long = replace(ALONE, input_tokens=4000)
    fast = times(DENSE, Server(gpu, 8, "vllm"), long)
    slow = times(DENSE, Server(replace(gpu, link="pcie"), 8, "vllm"), long)
    assert fast.first_token < slow.first_token


def test_packed_experts_and_fp8_have_their_own_speed():
    # Ten times the bandwidth would not tell both apart.
    old, new = server("ml.g5.xlarge"), server("ml.g6e.xlarge")
    load = replace(ALONE, concurrency=16)
    packed = times(EXPERTS, old, load).request / times(EXPERTS, new, load).request
    plain = times(DENSE, old, load).request / times(DENSE, new, load).request
    assert packed > 2 * plain
    model = Model.model_validate({**LLAMA.model_dump(), "quantization": "fp8"})
    half = Network.of(model, 1.05 * model.parameters, "fp8")
    where = server("ml.g6e.xlarge")
    assert times(half, where).per_token < 0.7 * times(DENSE, where).per_token
    assert band_of(half, where, 1).basis == "extrapolated"


def test_another_size_of_memory_is_another_gpu_and_an_engine_without_rows_is_unknown():
    assert gpu_of("ml.p4d.24xlarge").product == "NVIDIA A100"
    assert gpu_of("ml.p4de.24xlarge") is None
    assert gpu_of("ml.g4dn.xlarge") is None
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
    near = band_of(EXPERTS, server("ml.g5.12xlarge", 4), 8)
    assert 1 < near.factor <= found.factor
    assert (near.factor < found.factor) == (basis == "extrapolated")


def test_the_table_of_embeddings_is_read_as_the_output_layer_alone():
    network = DENSE
    table = 32_000 * 4096
    assert network.shared_bytes == pytest.approx(2 * (LLAMA.parameters - table))
    assert network.active_parameters == LLAMA.parameters - table
    tied = LLAMA.model_copy(update={"tied_embeddings": True})
    network = Network.of(tied, 2 * tied.parameters, None)
    assert network.shared_bytes == pytest.approx(2 * tied.parameters)


def test_all_bytes_are_somewhere_and_a_step_reads_some():
    stored = 13_761_264_768
    network = Network.of(GPT_OSS, stored, "mxfp4")
    table_bytes = 2 * 201_088 * 2880
    assert network.shared_bytes + network.expert_bytes + table_bytes == pytest.approx(stored)
    # Published: 3.6 of 20.9 billion weights compute a token, the table of embeddings among them.
    assert network.active_parameters == pytest.approx(3.6e9, rel=0.2)
    network = EXPERTS
    a_layer = 2 * 8 * 64 * 2
    assert network.read_cache_bytes(100) == 24 * 100 * a_layer
    assert network.read_cache_bytes(1000) == 12 * (1000 + 128) * a_layer
    assert network.touched(1) == pytest.approx(4 / 32)
    assert network.touched(2) == pytest.approx(1 - (28 / 32) ** 2)
    assert network.touched(1000) == pytest.approx(1.0)
    hybrid = LLAMA.model_copy(update={"cached_layers": 8, "state_bytes": 1000})
    network = Network.of(hybrid, 2 * hybrid.parameters, None)
    assert not network.reuses_prompts
    assert network.read_cache_bytes(0) == 2000


@pytest.mark.parametrize(
    ("changes", "method", "reason"),
    [
        ({}, "awq", "no measurement is of weights in awq"),
        ({"latent_size": 576}, None, "no measurement is of latent attention"),
        ({"cached_layers": 0}, None, "the network writes no text, or keeps no keys and values"),
        ({"layers": None, "hidden_size": None}, None, "`model` does not give layers, hidden_size"),
        ({"experts": 8}, None, "`model` does not give active_experts"),
    ],
)
def test_an_unknown_shape_is_unknown(changes, method, reason):
    model = LLAMA.model_copy(update=changes)
    with pytest.raises(UnknownShapeError) as refused:
        Network.of(model, 2 * model.parameters, method)
    assert str(refused.value) == reason


A10G, L40S = gpu_of("ml.g5.xlarge"), gpu_of("ml.g6e.xlarge")
SERVER = Server(A10G, 1, "vllm")


def test_a_correction_covers_its_gpu_and_engine_and_changes_evenly_between_two_loads():
    found = Correction.of("ml.g5.xlarge", SERVER, [(16, 8.0), (4, 1.0), (16, 2.0)])
    expected = {1: 1, 4: 1, 8: 2, 16: 4, 64: 4}
    assert {each: found.at(each) for each in expected} == pytest.approx(expected)
    found = Correction.of("ml.g5.xlarge", SERVER, [(1, 1.0)])
    assert found.covers(Server(A10G, 4, "vllm"))
    assert not found.covers(Server(L40S, 1, "vllm"))
    assert not found.covers(Server(A10G, 1, "tgi"))


def test_the_band_is_no_narrower_than_the_measurement():
    sure, unsure = (Correction("ml.g5.xlarge", SERVER, ((1, 1.0),), each) for each in (0.01, 0.9))
    same, other = (sure.band(DENSE, name, SERVER, 1) for name in ("ml.g5.xlarge", "ml.g5.2xlarge"))
    assert 1 < same.factor < other.factor
    assert unsure.band(DENSE, "ml.g5.xlarge", SERVER, 1).factor == pytest.approx(math.exp(0.9))


def test_settings_are_alike_in_every_bucket():
    one, other = ({"A": "1", "B": f"s3://{name}/x/"} for name in ("staging", "production"))
    assert settings_digest(one) == settings_digest(other) != settings_digest({"A": "2"})
