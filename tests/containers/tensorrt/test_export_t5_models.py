"""T5 before its export: position biases, unchanged weights, and models that are refused."""

import pytest

from tests.containers.tensorrt.t5_models import random_t5
from tests.support.groups import TORCH_MARKS, load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")

# After the skips: without the extra, nothing below is needed.
from containers.tensorrt.export import t5  # noqa: E402
from containers.tensorrt.export.graph_files import ExportError  # noqa: E402

pytestmark = [*TORCH_MARKS]


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


def test_another_family_is_refused(tmp_path):
    config = transformers.MT5Config(
        vocab_size=8, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2
    )
    model = transformers.MT5ForConditionalGeneration(config)
    for function in (t5.export_t5_encoder, t5.export_t5_decoder_step):
        with pytest.raises(
            ExportError, match=r"cannot export a model of type 'mt5': this step graph is t5's"
        ):
            function(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_another_precision_is_refused(tmp_path):
    model = random_t5(seed=3, gated=False, encoder_layers=1, decoder_layers=1)
    for function in (t5.export_t5_encoder, t5.export_t5_decoder_step):
        with pytest.raises(ExportError, match=r"cannot export a torch\.float32 model as fp16"):
            function(model, tmp_path / "model.onnx", precision="fp16")
