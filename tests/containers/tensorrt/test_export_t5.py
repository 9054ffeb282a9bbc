"""The exported encoder and decoder graphs of T5 compute what the PyTorch model computes."""

import copy

import numpy as np
import pytest

from tests.containers.tensorrt.t5_models import (
    VOCABULARY,
    cache_signature,
    changed,
    prompts,
    random_t5,
    signature,
    unused_inputs,
)
from tests.support.groups import TORCH_MARKS, load

torch = load("torch", group="torch")
load("transformers", group="torch")
onnx = load("onnx", group="torch")
load("onnxscript", group="torch")

# After the skips: without the extra, nothing below is needed.
import onnxruntime  # noqa: E402

from containers.tensorrt.export import t5  # noqa: E402
from containers.tensorrt.export.parity import (  # noqa: E402
    EncoderDecoder,
    ParityError,
    padded,
    run_decoder_step,
    run_encoder,
)

pytestmark = [*TORCH_MARKS]

LENGTHS = (3, 40, 1, 17, 9, 2, 24, 5, 12, 30)


def sessions(graphs):
    return EncoderDecoder(
        *(
            onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            for path in (graphs.encoder, graphs.decoder)
        )
    )


def encoded(graphs, given):
    """Returns the decoder's session, the prompts' mask, and what the encoder makes of them."""
    loaded = sessions(graphs)
    input_ids, mask = padded(given, on_the_left=False)
    return loaded.decoder, mask, run_encoder(loaded.encoder, input_ids, mask)


@pytest.fixture(params=["t5_graphs", "flan_graphs"])
def graphs(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("t5_graphs", "FLOAT"), ("flan_graphs", "FLOAT"), ("half_flan_graphs", "FLOAT16")],
)
def test_inputs_and_outputs_are_the_contract(request, name, kind):
    graphs = request.getfixturevalue(name)
    encoder, decoder = (onnx.load(path).graph for path in (graphs.encoder, graphs.decoder))
    number, int64 = onnx.TensorProto.DataType.Value(kind), onnx.TensorProto.INT64
    sizes = graphs.sizes
    cross = cache_signature("cross_key_values", sizes, "source", number)
    assert signature(encoder.input) == [
        ("input_ids", int64, ("batch", "source")),
        ("attention_mask", int64, ("batch", "source")),
    ]
    assert signature(encoder.output) == cross
    assert signature(decoder.input) == [
        ("input_ids", int64, ("batch", "sequence")),
        ("encoder_attention_mask", int64, ("batch", "source")),
        *cache_signature("past_key_values", sizes, "past", number),
        *cross,
    ]
    assert signature(decoder.output) == [
        ("logits", number, ("batch", 1, VOCABULARY)),
        *cache_signature("present", sizes, "past+sequence", number),
    ]
    for graph, path in ((encoder, graphs.encoder), (decoder, graphs.decoder)):
        assert unused_inputs(graph) == []
        assert b".py" not in path.read_bytes()


def test_logits_equal_the_models(graphs):
    checked = graphs.check(prompts(1, *LENGTHS), new_tokens=24)
    assert checked.prompts == len(LENGTHS)
    assert checked.tokens > 300
    assert checked.ties == 0
    assert checked.largest_logit_difference < 1e-4


def test_the_side_of_the_padding_does_not_matter(graphs):
    loaded = sessions(graphs)
    tokens = np.random.default_rng(2).integers(2, VOCABULARY, size=(len(LENGTHS), 20))

    def logits(*, on_the_left):
        input_ids, mask = padded(prompts(2, *LENGTHS), on_the_left=on_the_left)
        cross = run_encoder(loaded.encoder, input_ids, mask)
        return run_decoder_step(loaded.decoder, tokens, mask, cross)[0]

    np.testing.assert_allclose(logits(on_the_left=True), logits(on_the_left=False), atol=1e-4)


def test_a_row_that_left_changes_no_other(graphs):
    decoder, mask, cross = encoded(graphs, prompts(4, 4, 11, 6))
    _, past = run_decoder_step(decoder, np.array([[0, 5], [0, 6], [0, 7]]), mask, cross)
    following = np.array([[8], [9], [10]])
    whole, _ = run_decoder_step(decoder, following, mask, cross, past)
    kept = [2, 0]

    part, _ = run_decoder_step(
        decoder,
        following[kept],
        mask[kept],
        {name: states[kept] for name, states in cross.items()},
        [states[kept] for states in past],
    )

    np.testing.assert_allclose(part, whole[kept], atol=1e-4)


def test_several_tokens_at_once_equal_one_by_one(graphs):
    decoder, mask, cross = encoded(graphs, prompts(5, 8, 3))
    tokens = np.random.default_rng(5).integers(2, VOCABULARY, size=(2, 20))
    whole, cache_of_whole = run_decoder_step(decoder, tokens, mask, cross)
    past = []
    for part in np.split(tokens, [1, 2, 11], axis=1):
        logits, past = run_decoder_step(decoder, part, mask, cross, past)
    np.testing.assert_allclose(logits, whole, atol=1e-4)
    for left, right in zip(past, cache_of_whole, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-4)


def test_positions_that_ignore_the_past_are_reported(t5_graphs, tmp_path):
    """What the check finds in T5's graphs; test_export.py has the rest."""

    def shift(graph):
        # All keys seem to be as near as they can be.
        (clip,) = (node for node in graph.node if node.op_type == "Clip")
        clip.input[1] = clip.input[2]

    with pytest.raises(ParityError, match=r"logits of token \d+ after the prompt"):
        t5_graphs.check(prompts(6, 3, 20, 8), decoder=changed(t5_graphs.decoder, tmp_path, shift))


def test_padding_that_is_seen_is_reported(t5_graphs, tmp_path):
    mask = "encoder_attention_mask"

    def unmask(graph):
        (masking,) = (node for node in graph.node if mask in node.input)
        masking.CopyFrom(onnx.helper.make_node("Sub", [mask] * 2, masking.output))

    with pytest.raises(ParityError, match="the graph was made from other weights"):
        t5_graphs.check(prompts(6, 3, 20, 8), decoder=changed(t5_graphs.decoder, tmp_path, unmask))


class TestHalfPrecision:
    """Graphs of float16 hold what the model holds, and do not overflow where it would."""

    def test_graphs_agree_with_the_model(self, half_flan_graphs):
        model = half_flan_graphs.model
        assert model.lm_head.weight is not model.shared.weight
        assert not model.config.scale_decoder_outputs
        feed_forward = model.encoder.block[0].layer[-1].DenseReluDense
        assert feed_forward.wo.weight.dtype == torch.float32
        checked = half_flan_graphs.check(prompts(7, *LENGTHS))
        assert checked.prompts == len(LENGTHS)
        assert checked.tokens > 300
        assert checked.ties < checked.tokens / 50
        # Two ways to round, so not nothing.
        assert checked.largest_logit_difference > 0

    def test_graphs_are_nearer_to_float32_than_the_model_is(self, half_flan_graphs):
        model = half_flan_graphs.model
        given = prompts(7, *LENGTHS)
        input_ids, attention_mask = padded(given, on_the_left=False)
        tokens = np.random.default_rng(7).integers(2, VOCABULARY, size=(len(LENGTHS), 20))
        arguments = {
            "input_ids": torch.from_numpy(input_ids),
            "attention_mask": torch.from_numpy(attention_mask),
            "decoder_input_ids": torch.from_numpy(tokens),
        }
        with torch.no_grad():
            half = model(**arguments).logits[:, -1].float().numpy()
            exact = copy.deepcopy(model).float()(**arguments).logits[:, -1].numpy()
        decoder, mask, cross = encoded(half_flan_graphs, given)
        ours, _ = run_decoder_step(decoder, tokens, mask, cross)

        largest = np.abs(exact).max(axis=-1)
        difference, of_the_model = (
            (np.abs(logits.astype(np.float32) - exact).max(axis=-1) / largest).max()
            for logits in (ours, half)
        )
        assert 0 < difference < 1e-2
        assert difference < of_the_model

    def test_all_in_float16_the_model_overflows(self, half_flan_graphs):
        """So the test above would find graphs that do."""
        half = copy.deepcopy(half_flan_graphs.model).half()
        input_ids = torch.tensor(prompts(7, 9))
        peaks = []
        for block in half.encoder.block:
            block.layer[-1].DenseReluDense.wo.register_forward_hook(
                lambda _module, _inputs, output: peaks.append(float(output.abs().max()))
            )
        with torch.no_grad():
            half.encoder(input_ids)
            wide = half_flan_graphs.model.encoder(input_ids).last_hidden_state
        assert peaks == [float("inf")]
        assert wide.isfinite().all()

    def test_every_matrix_product_is_of_float16(self, half_flan_graphs):
        for path in (half_flan_graphs.encoder, half_flan_graphs.decoder):
            graph = onnx.shape_inference.infer_shapes(
                onnx.load(path), check_type=True, strict_mode=True
            ).graph
            values = [*graph.input, *graph.output, *graph.value_info]
            types = {value.name: value.type.tensor_type.elem_type for value in values}
            types |= {initialiser.name: initialiser.data_type for initialiser in graph.initializer}
            products = [n for n in graph.node if n.op_type in ("MatMul", "Gemm", "Softmax")]
            assert len(products) >= 12
            for node in products:
                kinds = {types[name] for name in (*node.input, *node.output)}
                assert kinds == {onnx.TensorProto.FLOAT16}, node.name
            large = {i.data_type for i in graph.initializer if np.prod(i.dims) > 1}
            assert onnx.TensorProto.FLOAT not in large
            names = {onnx.TensorProto.DataType.Name(kind) for kind in types.values()}
            assert names <= {"FLOAT16", "FLOAT", "INT64", "BOOL"}

    @pytest.mark.parametrize("gated", [True, False])
    def test_a_feed_forward_layer_rounds_as_float16_does(self, gated):
        model = random_t5(seed=4, gated=gated, encoder_layers=1, decoder_layers=1)
        layer = model.encoder.block[0].layer[-1]
        hidden = torch.randn(4, 9, 40, generator=torch.Generator().manual_seed(4)) * 3
        with torch.no_grad():
            exact = layer(hidden)
            half = t5._HalfFeedForward(copy.deepcopy(layer).half())(hidden)
        assert half.dtype == torch.float32
        added, expected = half - hidden, exact - hidden
        assert (added - expected).abs().max() < 4 * 2**-11 * expected.abs().max()
        assert not torch.equal(added, expected)

    def test_another_model_is_reported(self, flan_graphs, half_flan_graphs):
        other = copy.deepcopy(half_flan_graphs.model)
        with torch.no_grad():
            # Changes all logits by about 5 %.
            other.decoder.final_layer_norm.weight.mul_(1.05)
        for model, message in (
            (
                flan_graphs.model,
                r"encoder\.onnx computes in float16, and the model is torch\.float32",
            ),
            (other, r"differ by up to .* from the model's, and at most .* is rounding"),
        ):
            with pytest.raises(ParityError, match=message):
                half_flan_graphs.check(prompts(2, 5), model=model)


# The model before its export.


@pytest.mark.parametrize(("far", "buckets"), [(16, 8), (128, 32)])
@pytest.mark.parametrize("stack_name", ["encoder", "decoder"])
def test_the_table_of_position_biases_is_the_models(stack_name, far, buckets):
    model = random_t5(
        seed=1,
        gated=False,
        encoder_layers=1,
        decoder_layers=1,
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=far,
    )
    stack = getattr(model, stack_name)
    past, sequence = (0, 3 * far) if stack_name == "encoder" else (2 * far, far)
    with torch.no_grad():
        biases = t5._PositionBias(stack)(past, sequence)
        expected = (
            stack.block[0]
            .layer[0]
            .SelfAttention.compute_bias(sequence, past + sequence, past_seen_tokens=past)
        )
    if stack_name == "decoder":
        seen = torch.ones(sequence, past + sequence, dtype=torch.bool).tril(past)
        expected = expected.masked_fill(~seen, torch.finfo(torch.float32).min)
    assert torch.equal(biases, expected)
    assert len(biases.unique()) > 2 * buckets


def test_the_model_is_left_as_it_was():
    model = random_t5(seed=2, gated=True, encoder_layers=1, decoder_layers=1).half()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    attention = model.config._attn_implementation
    assert attention != "eager"
    with t5._plain_attention(model):
        assert model.decoder.config._attn_implementation == "eager"
        t5._Encoder(model), t5._DecoderStep(model)
    for config in (model.config, model.encoder.config, model.decoder.config):
        assert config._attn_implementation == attention
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
