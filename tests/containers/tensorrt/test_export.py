"""The exported step graph computes what the PyTorch model computes."""

import copy

import numpy as np
import pytest

from tests.support.groups import TORCH_MARKS, load

torch = load("torch", group="torch")
transformers = load("transformers", group="torch")
onnx = load("onnx", group="torch")
onnx_ir = load("onnx_ir", group="torch")
load("onnxscript", group="torch")

import onnxruntime  # noqa: E402  (after the skips: without the extra, nothing below is needed)
from tokenizers import Tokenizer  # noqa: E402

from containers.serving.predictor import ModelLoadError  # noqa: E402
from containers.tensorrt.export import graph_files  # noqa: E402
from containers.tensorrt.export.gpt2 import export_gpt2_step  # noqa: E402
from containers.tensorrt.export.graph_files import ExportError  # noqa: E402
from containers.tensorrt.export.parity import (  # noqa: E402
    HALF_LOGIT_TOLERANCE,
    ParityError,
    check_step_graph,
    padded,
    run_step,
)
from containers.tensorrt.export.t5 import (  # noqa: E402
    export_t5_decoder_step,
    export_t5_encoder,
)
from containers.tensorrt.model_directory import external_data_files  # noqa: E402
from containers.tensorrt.runtimes.onnx_runtime import OnnxRuntimeSession  # noqa: E402
from tests.containers.tensorrt.sample_model import GPT2, SAMPLE  # noqa: E402
from tests.containers.tensorrt.t5_models import (  # noqa: E402
    cache_signature,
    changed,
    signature,
    unused_inputs,
)

pytestmark = [*TORCH_MARKS]

NEW_TOKENS = 12


@pytest.fixture(scope="module")
def model(gpt2):
    return gpt2


@pytest.fixture(scope="module")
def graph(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "model.onnx"
    path.with_name("model.onnx.data").write_bytes(b"of an export before")
    export_gpt2_step(model, path)
    # The file would be taken for the weights of the graph beside it.
    assert list(path.parent.iterdir()) == [path]
    return path


def prompts(count):
    numbers = np.random.default_rng(count)
    lengths = numbers.integers(1, 14, size=count)
    return [numbers.integers(1, GPT2.vocabulary_size, size=length).tolist() for length in lengths]


def test_inputs_and_outputs_are_the_contract(graph):
    loaded = onnx.load(graph).graph
    int64, float32 = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    assert signature(loaded.input) == [
        ("input_ids", int64, ("batch", "sequence")),
        ("attention_mask", int64, ("batch", "past+sequence")),
        ("position_ids", int64, ("batch", "sequence")),
        *cache_signature("past_key_values", GPT2, "past", float32),
    ]
    assert signature(loaded.output) == [
        ("logits", float32, ("batch", 1, GPT2.vocabulary_size)),
        *cache_signature("present", GPT2, "past+sequence", float32),
    ]
    assert unused_inputs(loaded) == []
    # Nothing is of the exporting machine.
    assert b"site-packages" not in graph.read_bytes()
    assert b".py" not in graph.read_bytes()


def test_logits_are_the_models_in_a_padded_batch_and_alone(model, graph):
    checked = check_step_graph(graph, model, prompts(10), new_tokens=NEW_TOKENS)
    assert checked.prompts == 10
    assert checked.tokens > 200
    assert checked.ties == 0
    assert checked.largest_logit_difference < 1e-4


def test_prefill_in_two_steps_equals_one(graph):
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    input_ids, attention_mask = padded(
        [[5, 6, 7, 8, 9, 10, 11], [9, 1, 4, 3, 2, 6, 8]], on_the_left=True
    )
    whole, cache = run_step(session, input_ids, attention_mask)
    _, first = run_step(session, input_ids[:, :3], attention_mask[:, :3])
    parts, second = run_step(session, input_ids[:, 3:], attention_mask, first)
    np.testing.assert_allclose(parts, whole, atol=1e-4)
    for left, right in zip(second, cache, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-4)


def test_check_reports_a_mixed_up_cache(model, graph, tmp_path):
    def mix_up(loaded):
        loaded.output[1].name, loaded.output[2].name = (
            loaded.output[2].name,
            loaded.output[1].name,
        )

    with pytest.raises(ParityError, match=r"logits of token 2 .*: the graph mishandles its cache"):
        check_step_graph(changed(graph, tmp_path, mix_up), model, prompts(2))


def test_check_reports_a_malformed_graph(model, graph, tmp_path):
    broken = changed(graph, tmp_path, lambda loaded: loaded.node.pop(0))
    with pytest.raises(ParityError, match="is not a valid ONNX model"):
        check_step_graph(broken, model, prompts(1))


def tiny(model_type):
    sizes = {"vocab_size": 8, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = transformers.AutoConfig.for_model(model_type, **sizes, bos_token_id=0, eos_token_id=0)
    kind = "Seq2SeqLM" if config.is_encoder_decoder else "CausalLM"
    return getattr(transformers, f"AutoModelFor{kind}").from_config(config)


@pytest.mark.parametrize(
    ("export", "family", "other"),
    [
        (export_gpt2_step, "gpt2", "gpt_neox"),
        (export_t5_encoder, "t5", "mt5"),
        (export_t5_decoder_step, "t5", "mt5"),
    ],
)
def test_models_of_another_family_or_precision_are_refused(tmp_path, export, family, other):
    load_it = "load it with from_pretrained(..., dtype=torch."
    for model, precision, message in (
        (tiny(other), "fp32", f"a model of type '{other}': this step graph is {family}'s"),
        (tiny(family), "fp16", f"a torch.float32 model as fp16: {load_it}float16)"),
        (tiny(family).half(), "fp32", f"a torch.float16 model as fp32: {load_it}float32)"),
    ):
        with pytest.raises(ExportError) as error:
            export(model, tmp_path / "model.onnx", precision=precision)
        assert str(error.value) == f"cannot export {message}"
    assert list(tmp_path.iterdir()) == []


class TestWeightsBesideTheGraph:
    """As those of large models, with a lower threshold."""

    @pytest.fixture(scope="class")
    def beside(self, graph, tmp_path_factory):
        path = tmp_path_factory.mktemp("beside") / "model.onnx"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(graph_files, "_LARGEST_INLINE_WEIGHTS_BYTES", 0)
            graph_files.save_graph(onnx_ir.load(graph), path, {})
        return path

    def test_all_are_in_one_file(self, beside):
        data = beside.with_name("model.onnx.data")
        assert set(beside.parent.iterdir()) == {beside, data}
        spans = []
        for initialiser in onnx.load(beside, load_external_data=False).graph.initializer:
            entries = {entry.key: entry.value for entry in initialiser.external_data}
            if entries:
                assert entries["location"] == data.name
                spans.append((int(entries["offset"]), int(entries["length"])))
            else:
                assert len(initialiser.raw_data) <= 256
        # One after the other, to the end.
        ends = [0, *(offset + length for offset, length in spans)]
        assert [offset for offset, _ in spans] == ends[:-1]
        assert ends[-1] == data.stat().st_size

    def test_only_their_place_differs(self, beside, graph):
        joined = onnx.load(beside)
        for initialiser in joined.graph.initializer:
            # Says that the values are inside, which they are where nothing is said.
            initialiser.ClearField("data_location")
        assert joined.SerializeToString() == graph.read_bytes()

    def test_the_check_and_the_container_find_them(self, model, beside):
        assert check_step_graph(beside, model, prompts(2)).ties == 0
        assert external_data_files(beside) == ["model.onnx.data"]
        OnnxRuntimeSession(beside.parent, GPT2, intra_op_threads=1)


class TestHalfPrecision:
    """A graph of float16 computes what PyTorch computes in float16."""

    @pytest.fixture(scope="class")
    def half_model(self, model):
        return copy.deepcopy(model).half()

    def test_everything_but_whole_numbers_is_float16(self, half_gpt2_graph):
        loaded = onnx.shape_inference.infer_shapes(
            onnx.load(half_gpt2_graph), check_type=True, strict_mode=True
        ).graph
        values = [*loaded.input, *loaded.output, *loaded.value_info]
        types = {value.type.tensor_type.elem_type for value in values}
        types |= {initialiser.data_type for initialiser in loaded.initializer}
        names = {onnx.TensorProto.DataType.Name(kind) for kind in types}
        assert names == {"FLOAT16", "INT64", "BOOL"}
        assert {node.output[0] for node in loaded.node} <= {value.name for value in values}

    def test_layer_norms_sum_in_float32(self, half_gpt2_graph):
        norms = [
            n for n in onnx.load(half_gpt2_graph).graph.node if n.op_type == "LayerNormalization"
        ]
        # Two in each block, and the last.
        assert len(norms) == 2 * GPT2.layers + 1
        for norm in norms:
            attributes = {attribute.name: attribute.i for attribute in norm.attribute}
            assert attributes["stash_type"] == onnx.TensorProto.FLOAT

    def test_graph_agrees_with_model(self, half_model, half_gpt2_graph):
        checked = check_step_graph(half_gpt2_graph, half_model, prompts(10))
        assert checked.prompts == 10
        assert checked.tokens > 200
        # Two of a few hundred, where PyTorch's logits are equal or next to each other.
        assert checked.ties < checked.tokens / 50
        # Two ways to round, so not nothing; the largest logits are about 11.
        assert 0 < checked.largest_logit_difference < 11 * HALF_LOGIT_TOLERANCE

    def test_other_weights_are_reported(self, model, graph, half_model, half_gpt2_graph):
        message = (
            r"logits of token 1 after the prompt \[.*\] differ by up to .* from the model's, and "
            "at most .* is rounding: the graph was made from other weights"
        )
        for checked, made_from in ((graph, model), (half_gpt2_graph, half_model)):
            other = copy.deepcopy(made_from)
            with torch.no_grad():
                # Changes all logits by about 3 %.
                other.transformer.ln_f.weight.mul_(1.03)
            with pytest.raises(ParityError, match=message):
                check_step_graph(checked, other, prompts(2))

    def test_a_model_of_another_precision_is_reported(self, model, half_gpt2_graph):
        with pytest.raises(
            ParityError,
            match=r"computes in float16, and the model is torch\.float32: compare it with "
            r"from_pretrained\(\.\.\., dtype=torch\.float16\)",
        ):
            check_step_graph(half_gpt2_graph, model, prompts(1))

    def test_the_onnx_runtime_back_end_refuses_it(self, half_gpt2_graph):
        with pytest.raises(
            ModelLoadError,
            match=r"input past_key_values\.0\.key is tensor\(float16\) instead of tensor\(float\)",
        ):
            OnnxRuntimeSession(half_gpt2_graph.parent, GPT2, intra_op_threads=1)


class TestCommittedSample:
    def test_graph_agrees_with_checkpoint(self):
        texts = [
            "Amazon S3 bucket",
            "Specifies the name of the",
            "The Amazon Resource Name (ARN) of",
            "If you",
            "The maximum number of results to return in a single",
        ]
        model = transformers.GPT2LMHeadModel.from_pretrained(SAMPLE, dtype=torch.float32).eval()
        tokenizer = Tokenizer.from_file(str(SAMPLE / "tokenizer.json"))
        ids = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
        checked = check_step_graph(SAMPLE / "model.onnx", model, ids, new_tokens=30)
        assert checked.prompts == len(texts)
        assert checked.ties == 0
        assert checked.largest_logit_difference < 1e-3

    def test_weights_are_stored_once(self):
        assert (SAMPLE / "model.onnx").stat().st_size < 100_000
        assert sum(path.stat().st_size for path in SAMPLE.iterdir()) <= 5_000_000
