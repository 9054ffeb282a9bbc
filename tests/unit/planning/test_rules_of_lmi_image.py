"""Our LMI image: each rule, what it says, word for word, and what it lets pass."""

import ast
from pathlib import Path
from typing import Any

import pytest

from slipway.planning.deployment import Rule
from slipway.planning.families.lmi.handlers import OUR_HANDLERS
from slipway.planning.families.lmi.rules import accelerators as lmi_accelerators
from slipway.planning.families.lmi.rules import accelerators as lmi_families
from slipway.planning.families.lmi.rules import batching as lmi_batching
from slipway.planning.families.lmi.rules import batching as lmi_frameworks
from slipway.planning.families.lmi.rules import options as lmi_options
from slipway.planning.families.lmi.rules import partitioning as lmi_image
from slipway.planning.families.lmi.rules import serving as lmi
from slipway.planning.partial import rules_of
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, VLLM, sections
from tests.unit.planning.rule_findings import findings, only

HANDLERS = Path(__file__).parents[3] / "containers" / "lmi" / "handler"
# What `Options` and `GenerationLimits` are asked for by every handler of ours.
SHARED = {"default_new_tokens", "max_inputs", "max_new_tokens"}
# Read to refuse it, or the server's own.
NOT_SETTINGS = {"engine", "enable_streaming", "rolling_batch"}
OTHERS = rules_of(lmi, lmi_accelerators, lmi_families, lmi_batching, lmi_frameworks, lmi_options)


def found(
    rule: Rule,
    base: tuple[str, str],
    *,
    built: bool = True,
    model: dict[str, Any] | None = None,
    **serving: Any,
) -> list[tuple[str, str, str]]:
    given = sections(base, **serving)
    given["serving"]["image"] = "built" if built else "managed"
    return findings(rule, **given, **({"model": model} if model else {}))


@pytest.mark.parametrize("framework", OUR_HANDLERS)
def test_what_a_handler_reads_is_what_the_facts_say(framework: str):
    """Else a rule would refuse an option that works, or pass one that does not."""
    handler = OUR_HANDLERS[framework]
    tree = ast.parse((HANDLERS / f"{handler.module}.py").read_text("utf-8"))
    read = {
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "options"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    assert (read | SHARED) - NOT_SETTINGS == handler.options
    assert (HANDLERS / f"{handler.module}.py").is_file()


@pytest.mark.parametrize("framework", OUR_HANDLERS)
def test_precisions_are_those_that_the_handler_takes(framework: str):
    handler = OUR_HANDLERS[framework]
    tree = ast.parse((HANDLERS / f"{handler.module}.py").read_text("utf-8"))
    (value,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "_DTYPES"
    )
    assert value is not None
    assert tuple(ast.literal_eval(value)) == handler.dtypes


@pytest.mark.parametrize("image", [FT, DEEPSPEED, ("djl-deepspeed", "0.21.0")])
def test_a_config_of_our_image_breaks_no_rule(image: tuple[str, str]):
    options = {"max_new_tokens": 128, "default_new_tokens": 64, "max_inputs": 8}
    for rule in (*rules_of(lmi_image), *OTHERS):
        assert found(rule, image, options=options, max_batch_size=4) == [], rule.__name__


def test_awss_image_is_not_looked_at():
    """With a script of one's own any option may be read."""
    given = {"script": "mine", "options": {"max_new_tokenz": 0}, "rolling_batch": "vllm"}
    for rule in rules_of(lmi_image):
        assert found(rule, DEEPSPEED, built=False, **given) == []


class TestImage:
    def test_image_has_our_handler(self):
        assert only(found(lmi_image.image_has_our_handler, VLLM)) == (
            "serving.image",
            "Slipway has no handler for djl-lmi 0.36.0: `image: built` is for DeepSpeed and "
            "FasterTransformer",
            "Use `image: managed`, or the framework djl-deepspeed or djl-fastertransformer.",
        )
        assert only(found(lmi_image.image_has_our_handler, ("djl-deepspeed", "0.20.0"))) == (
            "serving.image",
            "Slipway has no handler for djl-deepspeed 0.20.0: `image: built` is for DeepSpeed "
            "and FasterTransformer",
            "Use a later version, or `image: managed`.",
        )
        assert found(lmi_image.image_has_our_handler, ("djl-deepspeed", "0.21.0")) == []

    @pytest.mark.parametrize(
        ("field", "value"), [("script", "containers/lmi/handler"), ("entry_point", "mine")]
    )
    def test_it_takes_no_second_handler(self, field: str, value: str):
        assert only(found(lmi_image.image_brings_the_handler, FT, **{field: value})) == (
            f"serving.{field}",
            f"the image has its handler inside, and `{field}` would not be read",
            f"Remove `{field}`, or use `image: managed`.",
        )

    def test_its_path_is_not_replaced(self):
        variables = {"PYTHONPATH": "/opt/ml/model", "OMP_NUM_THREADS": "4"}
        assert only(found(lmi_image.image_brings_the_handler, FT, environment=variables)) == (
            "serving.environment.PYTHONPATH",
            "`PYTHONPATH` is how the server finds the handler in the image",
            "Remove it, or use `image: managed` with a `script` beside what it is to import.",
        )


class TestSettings:
    def test_our_handler_reads_options(self):
        rule = lmi_image.our_handler_reads_options
        assert only(found(rule, FT, options={"max_new_tokenz": 64})) == (
            "serving.options.max_new_tokenz",
            "slipway_fastertransformer of djl-fastertransformer 0.24.0 reads no option "
            "'max_new_tokenz'",
            "Did you mean `max_new_tokens`? It reads default_new_tokens, max_inputs, "
            "max_new_tokens.",
        )
        known = {"max_tokens": 2048, "task": "text-generation", "enable_venv": True}
        assert found(rule, DEEPSPEED, options=known) == []
        problems = found(
            lmi_image.our_handler_reads_options, DEEPSPEED, options={"enable_streaming": True}
        )
        assert [(field, message) for field, message, _ in problems] == [
            (
                "serving.options.enable_streaming",
                "slipway_deepspeed of djl-deepspeed 0.27.0 reads no option 'enable_streaming'",
            )
        ]

    def test_our_handler_follows_fields(self):
        rule = lmi_image.our_handler_follows_fields
        assert only(found(rule, FT, dtype="fp8")) == (
            "serving.dtype",
            "slipway_fastertransformer of djl-fastertransformer 0.24.0 does not load weights "
            "in fp8",
            "Use one of fp32, fp16, bf16, int8.",
        )
        assert found(rule, FT, dtype="bf16") == []
        given = {"rolling_batch": "deepspeed", "max_rolling_batch_size": 8}
        assert found(rule, DEEPSPEED, **given) == [
            (
                "serving.rolling_batch",
                "slipway_deepspeed of djl-deepspeed 0.27.0 has no rolling batch",
                "Remove `rolling_batch`, or set `max_batch_size`.",
            ),
            (
                "serving.max_rolling_batch_size",
                "there is no rolling batch for `max_rolling_batch_size` to limit",
                "Remove it, or set `max_batch_size`.",
            ),
        ]
        assert found(rule, DEEPSPEED, rolling_batch="disable") == []
        assert only(found(rule, DEEPSPEED, pipeline_parallel_degree=2)) == (
            "serving.pipeline_parallel_degree",
            "slipway_deepspeed of djl-deepspeed 0.27.0 has no pipeline parallelism: it would "
            "ignore the degree 2",
            "Remove `pipeline_parallel_degree`, or raise `tensor_parallel_degree`.",
        )
        assert found(rule, FT, pipeline_parallel_degree=2) == []

    @pytest.mark.parametrize("value", [0, 1.5, "many", 1_000_001, True])
    def test_limits_are_whole_numbers(self, value: Any):
        shown = "true" if value is True else str(value)
        assert only(
            found(lmi_image.our_handlers_limits_agree, FT, options={"max_inputs": value})
        ) == (
            "serving.options.max_inputs",
            f"`max_inputs` is a whole number from 1 to 1000000, not {shown}",
            "Set `max_inputs` to such a number.",
        )

    @pytest.mark.parametrize(
        ("options", "limit"),
        [
            ({"default_new_tokens": 300}, 256),
            ({"default_new_tokens": 300, "max_new_tokens": 299}, 299),
        ],
    )
    def test_the_default_is_within_the_limit(self, options: dict[str, int], limit: int):
        assert only(found(lmi_image.our_handlers_limits_agree, FT, options=options)) == (
            "serving.options.default_new_tokens",
            f"`default_new_tokens` is 300, and no answer may have more than {limit}",
            "Lower it, or raise `max_new_tokens`.",
        )

    def test_a_limit_below_the_handlers_default_is_fine(self):
        """The handler lowers its own default then."""
        rule = lmi_image.our_handlers_limits_agree
        assert found(rule, FT, options={"max_new_tokens": 5}) == []

    def test_t5_in_fp16_is_the_engines_defect(self):
        model = {"family": "t5", "parameters": 11_135_332_352}
        for built in (True, False):
            given = {} if built else {"entry_point": "djl_python.fastertransformer"}
            problems = found(
                lmi_families.t5_is_not_in_fp16, FT, built=built, model=model, dtype="fp16", **given
            )
            assert [(field, remedy) for field, _, remedy in problems] == [
                ("serving.dtype", "Set `dtype: fp32` or `dtype: bf16`.")
            ]
