"""LMI's versions, handlers, weights and timeouts: refusals word for word, and configs that pass."""

import pytest

from slipway.planning.families.lmi.rules import accelerators as lmi_accelerators
from slipway.planning.families.lmi.rules import accelerators as lmi_families
from slipway.planning.families.lmi.rules import batching as lmi_batching
from slipway.planning.families.lmi.rules import batching as lmi_frameworks
from slipway.planning.families.lmi.rules import options as lmi_options
from slipway.planning.families.lmi.rules import serving as lmi
from slipway.planning.partial import rules_of
from tests.support.projects import LOCAL, PRODUCTION
from tests.unit.planning.lmi_findings import DEEPSPEED, FT, NEURONX, TRTLLM, VLLM, found, sections
from tests.unit.planning.rule_findings import findings, only, own_rules

WEIGHTS = {"source": "s3", "uri": "s3://my-models/flan-t5-xxl/"}
ALL_RULES = (
    *rules_of(lmi), *rules_of(lmi_accelerators), *rules_of(lmi_families),
    *rules_of(lmi_batching), *rules_of(lmi_options),
)  # fmt: skip


@pytest.mark.parametrize("image", [FT, DEEPSPEED, VLLM, NEURONX, TRTLLM], ids="-".join)
def test_a_plain_config_breaks_no_rule(image):
    for rule in ALL_RULES:
        assert found(rule, image, environment=PRODUCTION) == []


class TestVersions:
    def test_an_unknown_one_is_refused_once(self):
        assert only(found(own_rules, ("djl-fastertransformer", "0.22.0"))) == (
            "serving.version",
            "there is no image of djl-fastertransformer 0.22.0",
            "Did you mean `0.22.1`? There are 0.21.0, 0.22.1, 0.23.0, 0.24.0.",
        )

    def test_lmi_version_exists(self):
        ((_, _, remedy),) = found(lmi.lmi_version_exists, ("djl-fastertransformer", "0.36.0"))
        assert remedy == "Did you mean `0.24.0`? There are 0.21.0, 0.22.1, 0.23.0, 0.24.0."
        # A known one passes.
        assert found(lmi.lmi_version_exists, FT) == []


class TestHandlers:
    @pytest.mark.parametrize("engine", ["python", "PYTHON", "Python "])
    def test_the_case_of_an_engine_matters_and_a_space_after_it(self, engine):
        assert only(found(lmi.engine_is_accepted, ("djl-lmi", "0.28.0"), engine=engine)) == (
            "serving.engine",
            f"djl-lmi 0.28.0 has no engine '{engine}'",
            "Did you mean `Python`? There are MPI, Python; case matters.",
        )

    @pytest.mark.parametrize(
        ("image", "engine"), [(VLLM, "DeepSpeed"), (DEEPSPEED, "FasterTransformer")]
    )
    def test_an_engine_that_is_gone(self, image, engine):
        ((_, message, _),) = found(lmi.engine_is_accepted, image, engine=engine)
        assert message == f"{' '.join(image)} has no engine '{engine}'"

    def test_engines_that_are_there(self):
        for engine in ("Python", "MPI", "OnnxRuntime"):
            assert found(lmi.engine_is_accepted, VLLM, engine=engine) == []

    def test_an_engine_whose_handler_is_in_another_image(self):
        assert only(found(lmi.engine_has_handler, FT, engine="DeepSpeed")) == (
            "serving.engine",
            "djl-fastertransformer 0.24.0 has no handler for the engine DeepSpeed",
            "Remove `engine`, or choose the framework's image that has it.",
        )
        assert found(lmi.engine_has_handler, DEEPSPEED, engine="DeepSpeed") == []
        assert found(lmi.engine_has_handler, FT, engine="DeepSpeed", script="mine") == []

    def test_an_entry_point_is_one_of_the_images(self):
        given = {"entry_point": "djl_python.fastertransfomer"}
        assert only(found(lmi.entry_point_is_built_in, FT, **given)) == (
            "serving.entry_point",
            "djl-fastertransformer 0.24.0 has no handler 'djl_python.fastertransfomer'",
            "Did you mean `djl_python.fastertransformer`? There are djl_python.fastertransformer, "
            "djl_python.huggingface; a model.py of your own goes into `script`.",
        )
        given = {"entry_point": "djl_python.huggingface"}
        assert found(lmi.entry_point_is_built_in, FT, **given) == []

    def test_there_is_one_handler(self):
        rule = lmi.there_is_one_handler
        assert only(found(rule, FT, entry_point="djl_python.huggingface", script="mine")) == (
            "serving.script",
            "there are two handlers: `entry_point` and `script`",
            "Keep one of them.",
        )
        assert found(rule, FT, script="mine") == []
        older = ("djl-lmi", "0.28.0")
        ((_, _, remedy),) = found(rule, older, entry_point="djl_python.huggingface", script="mine")
        assert remedy == ("Keep one of them. From 0.29.0 on a model.py may have formatters for it.")
        assert found(rule, VLLM, entry_point="djl_python.huggingface", script="mine") == []
        assert only(found(rule, VLLM, engine="PyTorch", script="mine")) == (
            "serving.script",
            "the engine PyTorch runs no Python, so `script` is not read",
            "Remove it, or use the engine Python.",
        )

    def test_requirements_are_for_a_built_in_handler(self):
        rule = lmi.requirements_are_installed
        assert found(rule, VLLM, requirements="lists") == []
        assert only(found(rule, VLLM, requirements="lists", script="mine")) == (
            "serving.requirements",
            "`script` has a requirements.txt of its own, and `requirements` names another",
            "Put the packages into mine/requirements.txt, and remove `requirements`.",
        )
        assert only(found(rule, VLLM, engine="PyTorch", requirements="lists")) == (
            "serving.requirements",
            "the engine PyTorch runs no Python, so `requirements` is not read",
            "Remove it, or use the engine Python.",
        )


class TestWeights:
    def test_the_oldest_server_takes_none_from_s3(self):
        rule, oldest = lmi.weights_can_be_named, ("djl-deepspeed", "0.19.0")
        assert only(found(rule, oldest, environment=PRODUCTION)) == (
            "serving.version",
            "djl-deepspeed 0.19.0 does not copy weights from S3",
            "Use version 0.20.0 or a later one.",
        )
        assert found(rule, oldest, environment=LOCAL) == []
        assert found(rule, ("djl-deepspeed", "0.20.0"), environment=PRODUCTION) == []

    def test_network_isolation_forbids_the_copy(self):
        rule, isolated = lmi.weights_need_network, {"network_isolation": True}
        given = sections(FT)
        given["endpoint"] |= isolated
        weights = {"artifacts": {"weights": WEIGHTS}}
        expected = [
            (
                "endpoint.network_isolation",
                "the container copies the weights from S3 itself, which network isolation forbids",
                "Set `network_isolation: false` in `endpoint`.",
            )
        ]
        assert findings(rule, PRODUCTION, **given, **weights) == expected
        assert findings(rule, PRODUCTION, **given) == expected
        # Where variables may say the settings, SageMaker can bring the weights.
        newer = sections(("djl-lmi", "0.36.0"))
        newer["endpoint"] |= isolated
        (found_there,) = findings(rule, PRODUCTION, **newer, **weights)
        assert found_there[2] == (
            "Set `network_isolation: false` in `endpoint`, or `configuration: environment` in "
            "`serving`: SageMaker brings the weights then."
        )
        newer["serving"] |= {"configuration": "environment"}
        assert findings(rule, PRODUCTION, **newer, **weights) == []
        # A sample is packaged whole.
        assert findings(rule, LOCAL, **given, **weights) == []
        assert findings(rule, PRODUCTION, **given, artifacts={"weights": None}) == []
        assert found(rule, FT, environment=PRODUCTION) == []


class TestTimeouts:
    def test_loading_ends_before_sagemaker_gives_up(self):
        rule = lmi.loading_ends_in_time
        assert only(found(rule, FT, model_loading_timeout_seconds=1201)) == (
            "serving.model_loading_timeout_seconds",
            "the model may load for 1201 s, and SageMaker ends the start after 1200 s",
            "Lower `model_loading_timeout_seconds` to 1200 or less, or raise "
            "`endpoint.container_startup_health_check_timeout_seconds`.",
        )
        assert found(rule, FT, model_loading_timeout_seconds=1200) == []
        assert found(rule, FT) == []

    def test_predictions_end_before_sagemaker_does(self):
        rule = lmi.predictions_end_in_time
        assert only(found(rule, FT, predict_timeout_seconds=61)) == (
            "serving.predict_timeout_seconds",
            "a prediction may take 61 s, and SageMaker ends realtime requests after 60 s",
            "Lower `predict_timeout_seconds` to 60 or less, or use `mode: async`.",
        )
        assert found(rule, FT, predict_timeout_seconds=60) == []
        later = {
            "mode": "async",
            "async_inference": {"input": "s3://requests/", "output": "s3://answers/"},
        }
        assert found(rule, FT, endpoint=later, predict_timeout_seconds=900) == []


@pytest.mark.parametrize(
    ("image", "options"),
    [
        (("djl-deepspeed", "0.23.0"), {"output_formatter": "jsonlines"}),
        # From 0.27 on a request asks for its stream, and the formatter is for one that does not.
        (("djl-lmi", "0.32.0"), {}),
        (("djl-lmi", "0.32.0"), {"output_formatter": "jsonlines"}),
    ],
)
def test_streaming_with_a_rolling_batch_breaks_no_rule(image, options):
    for rule in (*ALL_RULES, *rules_of(lmi_frameworks)):
        assert found(rule, image, rolling_batch="vllm", options=options) == []
