"""What a network reads and computes for one token."""

import pytest

from slipway.sizing.network import Network, UnknownShapeError
from tests.unit.sizing.networks import GPT_OSS, LLAMA


def test_the_table_of_embeddings_is_not_read():
    network = Network.of(LLAMA, 2 * LLAMA.parameters, None)
    table = 32_000 * 4096
    assert network.shared_bytes == pytest.approx(2 * (LLAMA.parameters - table))
    assert network.active_parameters == LLAMA.parameters - table


def test_a_tied_table_is_read_as_the_output_layer():
    tied = LLAMA.model_copy(update={"tied_embeddings": True})
    network = Network.of(tied, 2 * tied.parameters, None)
    assert network.shared_bytes == pytest.approx(2 * tied.parameters)


def test_all_bytes_are_somewhere():
    stored = 13_761_264_768
    network = Network.of(GPT_OSS, stored, "mxfp4")
    table_bytes = 2 * 201_088 * 2880
    assert network.shared_bytes + network.expert_bytes + table_bytes == pytest.approx(stored)
    # Published: 3.6 of 20.9 billion weights compute a token, the table of embeddings among them.
    assert network.active_parameters == pytest.approx(3.6e9, rel=0.2)


def test_a_window_bounds_what_a_step_reads():
    network = Network.of(GPT_OSS, 13.76e9, "mxfp4")
    a_layer = 2 * 8 * 64 * 2
    assert network.read_cache_bytes(100) == 24 * 100 * a_layer
    assert network.read_cache_bytes(1000) == 12 * (1000 + 128) * a_layer


def test_a_batch_reads_the_experts_that_its_tokens_choose():
    network = Network.of(GPT_OSS, 13.76e9, "mxfp4")
    assert network.touched(1) == pytest.approx(4 / 32)
    assert network.touched(2) == pytest.approx(1 - (28 / 32) ** 2)
    assert network.touched(1000) == pytest.approx(1.0)


def test_states_are_read_and_written_and_prompts_cannot_be_kept():
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
        (
            {"layers": None, "hidden_size": None},
            None,
            "`model` does not give layers, hidden_size",
        ),
        ({"experts": 8}, None, "`model` does not give active_experts"),
    ],
)
def test_an_unknown_shape_is_unknown(changes, method, reason):
    model = LLAMA.model_copy(update=changes)
    with pytest.raises(UnknownShapeError) as refused:
        Network.of(model, 2 * model.parameters, method)
    assert str(refused.value) == reason
