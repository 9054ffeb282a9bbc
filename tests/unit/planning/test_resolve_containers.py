"""Plans of each container: its image, its host, its environment and its model data."""

import pytest

from slipway.errors import UserError
from slipway.planning.lock import Lock
from slipway.planning.plan_json import plan_as_json
from tests.support.plans import plan_for
from tests.support.projects import PRODUCTION, messages, model_config
from tests.unit.planning.models import checkpoint, neuron


def test_lmi_has_its_code_as_model_data_and_copies_the_weights_itself():
    found = plan_for(model_config(**checkpoint()), PRODUCTION)
    assert found.image.uri == (
        "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
    )
    assert found.weights is not None
    assert found.artifact.size_bytes == 482
    assert found.weights.size_bytes == 15_231_233_024
    assert found.serving_properties["option.model_id"] == found.weights.s3_uri
    assert found.weights.s3_uri == f"s3://{PRODUCTION.artifact_bucket}/artifacts/{'cd' * 32}/files/"
    assert plan_as_json(found)["weights"]["s3_uri"] == found.weights.s3_uri
    # By the image's CUDA, 13.0.
    assert found.variants[0].inference_ami_version == "al2023-ami-sagemaker-inference-gpu-4-1"
    # LMI serves a sample as it is.
    found = plan_for(model_config(**checkpoint()))
    assert found.artifact.published
    assert found.weights is None
    assert found.serving_properties == {}


def test_lmi_with_variables_has_its_weights_as_model_data_and_needs_no_network():
    config = model_config(
        **checkpoint(configuration="environment", environment={"OMP_NUM_THREADS": "1"})
    )
    endpoint = config.endpoint.model_copy(update={"network_isolation": True})
    config = config.model_copy(update={"endpoint": endpoint})
    found = plan_for(config, PRODUCTION)
    assert found.weights is None
    assert found.artifact.size_bytes == 15_231_233_024
    assert found.serving_properties == {}
    assert "HF_MODEL_ID" not in found.container_environment
    assert found.container_environment["OPTION_DTYPE"] == "fp16"
    assert found.container_environment["OMP_NUM_THREADS"] == "1"
    packaged = plan_for(model_config(**checkpoint()), PRODUCTION)
    assert packaged.artifact.size_bytes == 482
    assert packaged.container_environment == {}


def test_lmi_with_variables_is_planned_before_it_is_published():
    config = model_config(**checkpoint(configuration="environment"))
    with pytest.raises(UserError, match="the release was never published"):
        plan_for(config, PRODUCTION, Lock())
    found = plan_for(config, PRODUCTION, Lock(), allow_unpublished=True)
    assert found.artifact.s3_uri.endswith("/artifacts/unpublished/files/")
    assert found.container_environment["OPTION_DTYPE"] == "fp16"
    # LMI with variables takes a sample with its own settings.
    found = plan_for(model_config(**checkpoint(configuration="environment")))
    assert found.weights is None
    assert found.container_environment == {}


def test_what_has_no_image_yet_can_only_be_read():
    config = model_config(
        serving=neuron(task="embeddings", objective="latency"),
        model={"family": "bert", "parameters": 109_482_240},
        endpoint={"instances": ["ml.inf1.6xlarge"]},
        artifacts={"release": {"path": "build/bert", "target": "inf1"}},
    )
    with pytest.raises(UserError) as caught:
        plan_for(config, PRODUCTION)
    assert messages(caught.value) == ["Slipway has no image for the container `neuron` yet"]
    found = plan_for(config, PRODUCTION, Lock(), allow_unpublished=True)
    assert found.image.repository == "slipway/neuron"
    assert found.image.tag == "neuron1.13.1-sdk2.20.2-unpublished"
    assert found.neuron is not None
    assert found.neuron.pipeline_cores == 16
    # inf1 takes no host image.
    assert found.variants[0].inference_ami_version is None


def test_a_custom_image_on_neuron_devices_gets_the_host_with_the_newer_driver():
    """Left to SageMaker, the host has Neuron driver 2.10."""
    own = "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2"
    serving = {"container": "custom", "image_uri": own}

    def host(*instances: str) -> str | None:
        config = model_config(serving=serving, endpoint={"instances": list(instances)})
        return plan_for(config).variants[0].inference_ami_version

    assert host("ml.inf2.xlarge", "ml.trn1.2xlarge") == "al2-ami-sagemaker-inference-neuron-2"
    assert host("ml.inf1.xlarge") is None
    assert host("ml.c5.xlarge") is None
    # A pool has one host image, and no host image fits both types.
    with pytest.raises(UserError, match=r"ml\.c5\.xlarge has no GPU, and ml\.inf2\.xlarge of the"):
        host("ml.inf2.xlarge", "ml.c5.xlarge")


def test_triton_is_told_which_model_answers():
    serving = {"container": "triton", "version": "25.04", "max_input_tokens": 32}
    config = model_config(serving=serving | {"max_new_tokens": 32}, model={"family": "t5"})
    found = plan_for(config)
    assert found.image.repository == "slipway/triton"
    assert found.image.tag == "triton25.04-00112233445566aa"
    assert found.container_environment == {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "tiny",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "5242880",
        "SLIPWAY_INSTANCE_COUNT": "1",
        "SLIPWAY_MAX_BATCH_DELAY_MICROSECONDS": "0",
        "SLIPWAY_MAX_BATCH_SIZE": "8",
        "SLIPWAY_MAX_INPUT_TOKENS": "32",
        "SLIPWAY_MAX_NEW_TOKENS": "32",
        "SLIPWAY_MAX_QUEUE_LENGTH": "256",
    }
    own = {"container": "triton", "version": "25.04", "repository": "triton/tiny"}
    own |= {"log_verbose": True}
    found = plan_for(model_config(serving=own, artifacts={"release": None}))
    assert found.image.uri == (
        "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.04-py3"
    )
    # The image has a default of shared memory, and the repository may have one model.
    assert found.container_environment == {"SAGEMAKER_TRITON_LOG_VERBOSE": "true"}


def test_v100_gets_the_older_tensorrt_and_its_host():
    endpoint = {"instances": ["ml.p3.2xlarge"]}
    found = plan_for(model_config(endpoint=endpoint))
    assert found.image.tag == "trt10.4-0123456789abcdef"
    assert found.variants[0].inference_ami_version == "al2-ami-sagemaker-inference-gpu-3-1"
    assert plan_for(model_config()).variants[0].inference_ami_version == (
        "al2023-ami-sagemaker-inference-gpu-4-1"
    )


@pytest.mark.parametrize(
    ("instance_type", "ami"),
    [
        ("ml.g4dn.xlarge", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("ml.c5.xlarge", None),
        # A driver for NVIDIA's GPUs is of no use to them.
        ("ml.inf2.xlarge", None),
        ("ml.inf1.xlarge", None),
    ],
)
def test_a_variant_has_the_host_image_of_its_own_types(instance_type: str, ami: str | None):
    serving = {
        "container": "custom",
        "image_uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1.4.2",
        "cuda_version": "12.4",
    }
    variants = [
        {"name": "gpu", "weight": 1, "instances": ["ml.g5.xlarge"]},
        {"name": "other", "weight": 1, "instances": [instance_type]},
    ]
    found = plan_for(model_config(serving=serving, endpoint={"variants": variants})).variants
    assert found[0].inference_ami_version == "al2-ami-sagemaker-inference-gpu-3-1"
    assert found[1].inference_ami_version == ami


@pytest.mark.parametrize("path", ["search:1.4.2", f"search@sha256:{'ab' * 32}"])
def test_an_image_of_ones_own_keeps_its_tag_or_digest(path: str):
    uri = f"123456789012.dkr.ecr.us-east-1.amazonaws.com/{path}"
    image = plan_for(model_config(serving={"container": "custom", "image_uri": uri})).image
    assert (image.uri, image.repository) == (uri, "search")
