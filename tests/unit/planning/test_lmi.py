"""What LMI containers are told: serving.properties word for word, for every image there is."""

from typing import Any

import pytest

from slipway.config.schema import ModelConfig
from slipway.facts.images import UnknownVersionError, frameworks, versions
from slipway.facts.lmi.options import CUSTOM
from slipway.facts.lmi.versions import lmi_version
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.handlers import our_handler
from slipway.planning.families.lmi.setup import lmi_setup
from tests.support.deployments import lmi as deployment
from tests.support.projects import LOCAL, model_config

WEIGHTS = "s3://slipway-artifacts/artifacts/abcd/files/"
LIMITS = [
    "job_queue_size=1000",
    "option.predict_timeout=60",
    "option.model_loading_timeout=600",
]
RETRIED = [LIMITS[0], "retry_threshold=10", *LIMITS[1:]]
IMAGES = [
    (framework, version)
    for framework in frameworks()
    if framework.startswith("djl-")
    for version in versions(framework)
]


def lmi(framework: str, version: str, **serving: Any) -> ModelConfig:
    section = {"container": "lmi", "framework": framework, "version": version, "dtype": "fp16"}
    return model_config(serving=section | serving)


def lines(config: ModelConfig) -> list[str]:
    return [f"{key}={value}" for key, value in deployment(config).properties(WEIGHTS).items()]


def setup(framework: str, version: str, **serving: Any) -> Any:
    return lmi_setup(lmi(framework, version, **serving).serving)


FLAN_T5_XXL = {"dtype": "fp32", "tensor_parallel_degree": 4, "model_loading_timeout_seconds": 600}


class TestProperties:
    def test_flan_t5_xxl_as_published(self):
        assert lines(lmi("djl-fastertransformer", "0.21.0", **FLAN_T5_XXL)) == [
            "engine=FasterTransformer",
            "option.entryPoint=djl_python.fastertransformer",
            f"option.s3url={WEIGHTS}",
            "option.tensor_parallel_degree=4",
            "option.dtype=fp32",
            *LIMITS,
        ]
        # FLAN-T5 XXL, two versions later.
        assert lines(lmi("djl-fastertransformer", "0.23.0", **FLAN_T5_XXL)) == [
            "engine=FasterTransformer",
            f"option.model_id={WEIGHTS}",
            "option.tensor_parallel_degree=4",
            "option.dtype=fp32",
            *LIMITS,
        ]

    def test_a_model_py_beside_an_entry_point_has_formatters_for_it(self):
        given = {"script": "mine", "max_rolling_batch_size": 8}
        own = lines(lmi("djl-lmi", "0.30.0", **given))
        assert "option.rolling_batch=disable" in own
        # A model.py may have a rolling batch of its own.
        assert "option.max_rolling_batch_size=8" in own
        handler = "djl_python.huggingface"
        formatters = lines(lmi("djl-lmi", "0.30.0", entry_point=handler, **given))
        assert f"option.entryPoint={handler}" in formatters
        assert "option.rolling_batch=disable" not in formatters
        assert setup("djl-lmi", "0.30.0", entry_point=handler, **given).handler == "huggingface"
        # `model.py` is told no precision where the checkpoint has it.
        own = lines(lmi("djl-lmi", "0.30.0", script="mine", dtype="auto"))
        assert not any(line.startswith("option.dtype") for line in own)
        assert "option.dtype=auto" in lines(lmi("djl-lmi", "0.30.0", dtype="auto"))

    def test_keys_of_the_server_have_no_prefix(self):
        options = {"load_on_devices": "0;1", "gpu.reserved_memory_mb": 1000, "seed": 3}
        written = lines(lmi("djl-lmi", "0.36.0", options=options))
        assert written[-3:] == [
            "gpu.reserved_memory_mb=1000",
            "load_on_devices=0;1",
            "option.seed=3",
        ]

    @pytest.mark.parametrize(
        ("instances", "pipeline", "degree"),
        [
            (["ml.g5.12xlarge", "ml.g5.2xlarge"], 1, 4),
            (["ml.g5.12xlarge"], 2, 2),
            (["ml.m5.xlarge"], 1, 1),
        ],
    )
    def test_the_highest_degree_is_that_of_the_preferred_type(self, instances, pipeline, degree):
        given = {"tensor_parallel_degree": "max", "pipeline_parallel_degree": pipeline}
        config = lmi("djl-lmi", "0.36.0", **given)
        endpoint = config.endpoint.model_copy(update={"instances": tuple(instances)})
        there = deployment(config.model_copy(update={"endpoint": endpoint}))
        assert there.properties(WEIGHTS)["option.tensor_parallel_degree"] == str(degree)

    def test_our_image_names_the_handler_inside(self):
        options = {"task": "text-generation", "max_new_tokens": 128}
        config = lmi("djl-deepspeed", "0.27.0", image="built", max_batch_size=4, options=options)
        assert lines(config) == [
            "engine=DeepSpeed",
            "option.entryPoint=slipway_deepspeed",
            f"option.model_id={WEIGHTS}",
            "option.tensor_parallel_degree=1",
            "option.dtype=fp16",
            "batch_size=4",
            "max_batch_delay=100",
            *LIMITS,
            "option.max_new_tokens=128",
            "option.task=text-generation",
        ]

    @pytest.mark.parametrize(
        ("framework", "version"),
        [image for image in IMAGES if our_handler(*image) is not None],
    )
    def test_our_image_is_told_what_a_script_is_told(self, framework: str, version: str):
        """Ours among scripts: the one difference is where the handler is."""
        script = deployment(lmi(framework, version, script="containers/lmi/handler")).properties(
            WEIGHTS
        )
        built = deployment(lmi(framework, version, image="built")).properties(WEIGHTS)
        module = our_handler(framework, version).module
        assert built == {**script, "option.entryPoint": module}
        rolls = version == "0.27.0"
        assert built.get("option.rolling_batch") == ("disable" if rolls else None)

    def test_gpt_j_on_deepspeed(self):
        options = {"task": "text-generation", "max_tokens": 2048, "enable_cuda_graph": False}
        assert lines(lmi("djl-deepspeed", "0.23.0", options=options)) == [
            "engine=DeepSpeed",
            f"option.model_id={WEIGHTS}",
            "option.tensor_parallel_degree=1",
            "option.dtype=fp16",
            "option.trust_remote_code=false",
            *LIMITS,
            "option.enable_cuda_graph=false",
            "option.max_tokens=2048",
            "option.task=text-generation",
        ]

    def test_vllm(self):
        config = lmi(
            "djl-lmi",
            "0.36.0",
            dtype="bf16",
            tensor_parallel_degree=2,
            rolling_batch="vllm",
            max_rolling_batch_size=64,
            trust_remote_code=True,
            max_queue_length=200,
            options={"max_model_len": 8192, "gpu_memory_utilization": 0.85},
        )
        assert lines(config) == [
            "engine=Python",
            f"option.model_id={WEIGHTS}",
            "option.tensor_parallel_degree=2",
            "option.dtype=bf16",
            "option.trust_remote_code=true",
            "option.rolling_batch=vllm",
            "option.max_rolling_batch_size=64",
            "job_queue_size=200",
            "retry_threshold=10",
            "option.predict_timeout=60",
            "option.model_loading_timeout=600",
            "option.gpu_memory_utilization=0.85",
            "option.max_model_len=8192",
        ]
        # vLLM as the image starts it.
        config = lmi(
            "djl-lmi", "0.36.0", pipeline_parallel_degree=2, max_rolling_batch_size=16,
            options={"enable_prefix_caching": True},
        )  # fmt: skip
        assert lines(config) == [
            "engine=Python",
            f"option.model_id={WEIGHTS}",
            "option.tensor_parallel_degree=1",
            "option.pipeline_parallel_degree=2",
            "option.dtype=fp16",
            "option.trust_remote_code=false",
            "option.max_rolling_batch_size=16",
            *RETRIED,
            "option.enable_prefix_caching=true",
        ]

    def test_tensorrt_llm(self):
        config = lmi(
            "djl-tensorrtllm", "0.33.0", tensor_parallel_degree=4, options={"max_num_tokens": 8192}
        )
        assert lines(config) == [
            "engine=Python",
            f"option.model_id={WEIGHTS}",
            "option.tensor_parallel_degree=4",
            "option.dtype=float16",
            "option.trust_remote_code=false",
            *RETRIED,
            "option.max_num_tokens=8192",
        ]

    @pytest.mark.parametrize(
        ("version", "serving", "written"),
        [
            ("0.33.0", {"dtype": "bf16"}, "bfloat16"),
            ("0.33.0", {"dtype": "fp32", "entry_point": "djl_python.tensorrt_llm"}, "float32"),
            ("0.33.0", {"dtype": "fp8"}, "fp8"),
            # AWS's toolkit of that day knows these.
            ("0.32.0", {"dtype": "bf16", "rolling_batch": "trtllm"}, "bf16"),
            # Another handler's names are its own.
            ("0.33.0", {"dtype": "bf16", "entry_point": "djl_python.huggingface"}, "bf16"),
        ],
    )
    def test_tensorrt_llm_has_names_of_its_own_for_precisions(self, version, serving, written):
        config = lmi("djl-tensorrtllm", version, **serving)
        assert f"option.dtype={written}" in lines(config)

    def test_batches_are_of_one_kind(self):
        config = lmi(
            "djl-fastertransformer", "0.24.0", max_batch_size=4, max_batch_delay_milliseconds=20
        )
        assert [line for line in lines(config) if "batch" in line] == [
            "batch_size=4",
            "max_batch_delay=20",
        ]
        both = lmi(
            "djl-lmi", "0.32.0", max_batch_size=4, rolling_batch="vllm", max_rolling_batch_size=9
        )
        assert [line for line in lines(both) if "batch" in line] == [
            "batch_size=4",
            "max_batch_delay=100",
        ]

    def test_a_handler_of_ones_own_gets_everything_and_no_entry_point(self):
        config = lmi(
            "djl-deepspeed", "0.27.0", script="handlers/gpt-j", trust_remote_code=True,
            options={"flavour": "plain"},
        )  # fmt: skip
        assert lines(config) == [
            "engine=DeepSpeed",
            f"option.model_id={WEIGHTS}",
            "option.tensor_parallel_degree=1",
            "option.dtype=fp16",
            "option.trust_remote_code=true",
            "option.rolling_batch=disable",
            *LIMITS,
            "option.flavour=plain",
        ]

    @pytest.mark.parametrize(
        ("version", "settings", "written"),
        [
            ("0.26.0", {}, None),
            ("0.27.0", {"rolling_batch": "auto"}, "auto"),
            ("0.27.0", {"max_batch_size": 2}, None),
        ],
    )
    def test_a_script_has_no_rolling_batch_unless_it_asks(self, version, settings, written):
        config = lmi("djl-deepspeed", version, script="handlers/gpt-j", **settings)
        assert deployment(config).properties(WEIGHTS).get("option.rolling_batch") == written

    def test_an_engine_without_python_is_told_what_the_server_reads(self):
        config = lmi("djl-lmi", "0.36.0", engine="OnnxRuntime", max_batch_size=8)
        assert lines(config) == [
            "engine=OnnxRuntime",
            f"option.model_id={WEIGHTS}",
            "batch_size=8",
            "max_batch_delay=100",
            "job_queue_size=1000",
        ]

    def test_the_first_version_calls_the_precision_otherwise(self):
        assert lines(lmi("djl-deepspeed", "0.19.0")) == [
            "engine=DeepSpeed",
            "option.entryPoint=djl_python.deepspeed",
            "option.tensor_parallel_degree=1",
            "option.data_type=fp16",
            "option.predict_timeout=60",
            "option.model_loading_timeout=600",
        ]

    def test_an_unknown_version_has_none(self):
        with pytest.raises(UnknownVersionError):
            deployment(lmi("djl-lmi", "0.37.0")).properties(WEIGHTS)
        # Another container has none.
        with pytest.raises(TypeError, match="tiny is served by the container tensorrt"):
            _ = Lmi(model_config(), (), LOCAL).setup


EVERYTHING = {
    "dtype": "fp16",
    "tensor_parallel_degree": 2,
    "pipeline_parallel_degree": 2,
    "trust_remote_code": True,
    "max_rolling_batch_size": 8,
}


@pytest.mark.parametrize("image", IMAGES, ids="-".join)
@pytest.mark.parametrize("batches", [{}, {"max_batch_size": 4}, {"rolling_batch": "auto"}], ids=str)
def test_every_key_is_one_that_the_version_reads(image, batches):
    version = lmi_version(*image)
    engines: list[str | None] = [None, *version.engines, *version.embedding_engines]
    for engine in engines:
        for entry_point in (None, *version.entry_points):
            config = lmi(*image, engine=engine, entry_point=entry_point, **EVERYTHING, **batches)
            found = lmi_setup(config.serving)
            written = deployment(config).properties(WEIGHTS)
            for key, value in written.items():
                name = key.removeprefix("option.")
                if name == key:
                    assert name in version.server_keys
                elif found.handler is None:
                    assert name in (*version.weights.s3, "entryPoint")
                else:
                    assert found.is_open or name in version.options_for(found.handler), key
                assert value == value.strip() != ""
            required = [
                name
                for name, facts in found.every_option.items()
                if found.engine in facts.required_by_engines
            ]
            assert {f"option.{name}" for name in required} <= set(written)


@pytest.mark.parametrize("image", IMAGES, ids="-".join)
def test_every_image_has_a_handler_by_default(image):
    found = setup(*image)
    assert found.engine in found.version.engines
    assert found.handler not in (None, CUSTOM)
    written = deployment(lmi(*image)).properties(WEIGHTS)
    # The server's own choice is left to it, and where it has none the file says it.
    default = found.version.default_entry_point(found.engine)
    assert written.get("option.entryPoint", default) == found.entry_point
    assert ("option.entryPoint" in written) == (default is None)


@pytest.mark.parametrize(
    ("image", "serving", "engine", "handler", "rolling_batch"),
    [
        (("djl-fastertransformer", "0.21.0"), {}, "FasterTransformer", "fastertransformer", None),
        (
            ("djl-fastertransformer", "0.23.0"),
            {"entry_point": "djl_python.huggingface"},
            "Python",
            "huggingface",
            None,
        ),
        (("djl-deepspeed", "0.27.0"), {}, "DeepSpeed", "deepspeed", "disable"),
        (("djl-deepspeed", "0.27.0"), {"rolling_batch": "vllm"}, "Python", "huggingface", "vllm"),
        (
            ("djl-deepspeed", "0.27.0"),
            {"rolling_batch": "lmi-dist"},
            "MPI",
            "huggingface",
            "lmi-dist",
        ),
        (("djl-neuronx", "0.24.0"), {}, "Python", "transformers_neuronx", None),
        (("djl-tensorrtllm", "0.30.0"), {}, "MPI", "tensorrt_llm", "auto"),
        (("djl-tensorrtllm", "0.32.0"), {}, "Python", "tensorrt_llm", "auto"),
        (("djl-tensorrtllm", "0.33.0"), {}, "Python", "trtllm_async", "auto"),
        (("djl-lmi", "0.28.0"), {}, "Python", "huggingface", "auto"),
        (("djl-lmi", "0.28.0"), {"max_batch_size": 2}, "Python", "huggingface", "disable"),
        (("djl-lmi", "0.36.0"), {}, "Python", "vllm_async", "auto"),
        (("djl-lmi", "0.36.0"), {"max_batch_size": 2}, "Python", "huggingface", "disable"),
        (("djl-lmi", "0.36.0"), {"script": "handlers/mine"}, "Python", "custom", None),
        (("djl-lmi", "0.36.0"), {"engine": "PyTorch"}, "PyTorch", None, None),
        (("djl-lmi", "0.36.0"), {"entry_point": "no.such"}, "Python", None, None),
    ],
)
def test_what_answers(image, serving, engine, handler, rolling_batch):
    found = setup(*image, **serving)
    assert (found.engine, found.handler, found.rolling_batch) == (engine, handler, rolling_batch)


def test_the_caches_of_the_first_versions_are_led_to_where_one_can_write():
    caches = {"HUGGINGFACE_HUB_CACHE": "/tmp", "TRANSFORMERS_CACHE": "/tmp"}  # noqa: S108
    assert deployment(lmi("djl-fastertransformer", "0.21.0")).container_environment() == caches
    assert deployment(lmi("djl-fastertransformer", "0.22.1")).container_environment() == {}
    # What the config says wins.
    given = {"TRANSFORMERS_CACHE": "/tmp/hub", "OMP_NUM_THREADS": "1"}  # noqa: S108
    config = lmi("djl-fastertransformer", "0.21.0", environment=given)
    assert deployment(config).container_environment() == {
        "HUGGINGFACE_HUB_CACHE": "/tmp",  # noqa: S108
        **given,
    }
