"""`slipway import --endpoint`: what an image of Slipway's and the files of the model data tell."""

import io
import json
import struct
import tarfile

import boto3
import pytest

from slipway import java_properties
from slipway.embedded_aws.identity import ACCESS_KEY_ID
from slipway.facts.instances import instance_types
from slipway.importing.own_images import Variables
from slipway.importing.tensorrt import tensorrt_section
from slipway.planning.families import deployment_of
from slipway.project import Project
from tests.support.accounts import SECRET_ACCESS_KEY, object_storage
from tests.support.described_endpoints import REGION, answers
from tests.support.golden_cases import plan_content
from tests.support.projects import PRODUCTION

BUCKET = "acme-models"
LMI_IMAGE = f"763104351884.dkr.ecr.{REGION}.amazonaws.com/djl-inference:0.30.0-lmi12.0.0-cu124"
PROPERTIES = b"""\
engine=Python
option.model_id=s3://acme-models/llama-2-7b/
option.rolling_batch=vllm
option.max_model_len=4096
"""
WEIGHTS = "s3://acme-models/llama-2-7b/"
# The package of an image that Slipway built, with other weights.
PLAN = plan_content("lmi-built")
BUILT = {
    **PLAN["serving_properties"],
    "option.model_id": WEIGHTS,
    "option.model_loading_timeout": "900",
}
HANDLER = b"def handle(inputs):\n    return inputs\n"
CONFIG = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
          "num_attention_heads": 32, "torch_dtype": "float16",
          "max_position_embeddings": 4096, "vocab_size": 320}  # fmt: skip
TENSORS = {"model.embed_tokens.weight": {"dtype": "F16", "shape": [320, 8],
                                         "data_offsets": [0, 5120]}}  # fmt: skip


@pytest.fixture(scope="module")
def s3():
    with object_storage() as url:
        keys = {"aws_access_key_id": ACCESS_KEY_ID, "aws_secret_access_key": SECRET_ACCESS_KEY}
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys)
        client.create_bucket(Bucket=BUCKET)
        header = json.dumps(TENSORS).encode()
        files = {
            "llama-2-7b/config.json": json.dumps(CONFIG).encode(),
            "llama-2-7b/model.safetensors": struct.pack("<Q", len(header)) + header + bytes(5120),
            "package/serving.properties": PROPERTIES,
            "built/serving.properties": java_properties.render(BUILT),
            "package.tar.gz": archive({"chat/serving.properties": PROPERTIES,
                                       "chat/model.py": HANDLER, "../outside.py": b""}),
            "broken.tar.gz": b"no archive",
            "other/model.bin": bytes(3_000_000),
        }  # fmt: skip
        for key, content in files.items():
            client.put_object(Bucket=BUCKET, Key=key, Body=content)
        yield client


def archive(files):
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return target.getvalue()


@pytest.fixture
def run(import_endpoint, s3):
    """Imports an endpoint whose model data lies at an address."""

    def command(address, image=LMI_IMAGE, environment=None, *options):
        given = answers()
        container = given["DescribeModel"]["PrimaryContainer"]
        container |= {"Image": image, "Environment": environment or {}}
        container.pop("ModelDataSource")
        container["ModelDataUrl"] = address
        return import_endpoint(given, *options, s3=s3)

    return command


@pytest.mark.parametrize("address", ["package/", "package.tar.gz"])
def test_a_package_has_the_settings_of_an_lmi_container(accepted, written, tmp_path, address):
    output = accepted(f"s3://{BUCKET}/{address}", environment={"OMP_NUM_THREADS": "2"})
    content = written()
    assert content["serving"]["framework"] == "djl-lmi"
    assert content["serving"]["version"] == "0.30.0"
    assert content["serving"]["rolling_batch"] == "vllm"
    assert content["serving"]["options"] == {"max_model_len": 4096}
    assert content["serving"]["environment"] == {"OMP_NUM_THREADS": "2"}
    assert content["endpoint"]["container_startup_health_check_timeout_seconds"] == 900
    # The weights' own files, at the address that serving.properties names.
    assert content["artifacts"]["weights"]["uri"] == f"s3://{BUCKET}/llama-2-7b/"
    assert content["model"]["family"] == "llama"
    assert content["model"]["parameters"] == 320 * 8
    assert content["model"]["layers"] == 32
    handlers = {path.name: path.read_bytes() for path in tmp_path.glob("handlers/chat/*")}
    assert handlers == ({"model.py": HANDLER} if address.endswith(".gz") else {})
    assert not list(tmp_path.rglob("outside.py"))
    assert ". chat-old goes on as it is" in output


def test_slipways_own_lmi_image_is_built_again(run, written, tmp_path):
    code, output, errors = run(
        f"s3://{BUCKET}/built/", PLAN["image"]["uri"], PLAN["container_environment"],
        "--instance", "ml.g5.12xlarge",
    )  # fmt: skip
    assert (code, errors) == (0, "")
    assert written()["serving"]["image"] == "built"
    assert "entry_point" not in written()["serving"]
    config = Project(tmp_path).config("chat", "production").config
    deployment = deployment_of(config, PRODUCTION)
    assert deployment.properties(WEIGHTS) == BUILT
    assert deployment.container_environment() == PLAN["container_environment"]
    assert PLAN["image"]["tag"].startswith(f"{deployment.image_base.tag}-")
    assert "Left out: option." not in output


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("broken.tar.gz", "it cannot be read: file could not be opened successfully"),
        ("gone.tar.gz", "it cannot be read: An error occurred (404) when calling the HeadObject"),
    ],
)
def test_a_package_that_cannot_be_read_is_no_package_without_settings(run, config, key, why):
    code, output, errors = run(f"s3://{BUCKET}/{key}")
    assert (code, output) == (1, "")
    assert (
        f"- the model data s3://{BUCKET}/{key} of the endpoint chat-old may have the settings of "
        f"its server, and {why}" in errors
    )
    assert (
        "Allow `s3:GetObject` and `s3:ListBucket` on it. Or unpack it into a folder, and run "
        "`slipway import chat --properties FOLDER`." in errors
    )
    assert not config.exists()


def test_a_checkpoint_tells_its_network(accepted, written, tmp_path):
    image = f"763104351884.dkr.ecr.{REGION}.amazonaws.com/huggingface-pytorch-inference:2.1"
    accepted(f"s3://{BUCKET}/llama-2-7b/", image=image)
    assert written()["model"] == {
        "family": "llama", "parameters": 320 * 8, "layers": 32, "hidden_size": 4096,
        "attention_heads": 32, "positions": 4096, "vocabulary_size": 320,
        "tied_embeddings": True,
    }  # fmt: skip
    config = Project(tmp_path).config("chat", "production").config
    assert config.serving.container == "custom"


def test_files_without_a_checkpoint_give_rough_guesses(accepted, written, text):
    image = f"763104351884.dkr.ecr.{REGION}.amazonaws.com/pytorch-inference:2.1"
    accepted(f"s3://{BUCKET}/other/", image=image)
    assert written()["model"] == {"family": "other", "parameters": 1_500_000}
    assert (
        "  # Guess: nothing tells it. With `other`, checks that need the architecture are off.\n"
        "  family: other\n"
        "  # Guess: the model data has 0.003 GB, and two bytes for each weight are usual.\n"
        in text()
    )


@pytest.mark.parametrize(
    ("case", "guessed"),
    [
        ("neuron-inf2", {"objective", "sequence_length"}),
        ("neuron-latency", {"objective", "sequence_length"}),
        ("tensorrt-v100", {"dtype"}),
        ("triton-tensorrt", {"backend"}),
    ],
)
def test_the_plan_has_the_same_container(tmp_path, import_endpoint, case, guessed):
    plan = plan_content(case)
    given = answers()
    given["DescribeModel"]["PrimaryContainer"] |= {
        "Image": plan["image"]["uri"],
        "Environment": {**plan["container_environment"], "SLIPWAY_LATER": "1"},
    }
    variant = given["DescribeEndpointConfig"]["ProductionVariants"][0]
    variant["InstanceType"] = plan["variants"][0]["instance_types"][0]
    network = ("--family", family_of(case), "--parameters", "60506624")
    code, output, errors = import_endpoint(given, *network, "--json", name=case)
    report = json.loads(output)
    assert (code, errors, report["problems"]) == (0, "", [])
    config = Project(tmp_path).config(case, "production").config
    deployment = deployment_of(config, PRODUCTION)
    own = deployment.container_environment()
    later = own.pop("SLIPWAY_LATER", None) or [
        each["value"] for each in report["left_out"] if each["name"] == "SLIPWAY_LATER"
    ]
    assert later in ("1", ["1"])
    assert own == plan["container_environment"]
    assert plan["image"]["tag"].startswith(f"{deployment.image_base.tag}-")
    guesses = {each["field"] for each in report["guesses"] if each["field"].startswith("serving.")}
    assert guesses == {f"serving.{name}" for name in guessed}


def test_gpt2_on_processors_is_read_in_a_precision_of_processors():
    found = tensorrt_section(Variables({}), "trt10.13-0", instance_types()["ml.c7i.2xlarge"])
    assert (found.serving["dtype"], found.target) == ("fp32", "cpu")


def family_of(case: str) -> str:
    return {"neuron": "bert", "tensorrt": "gpt2", "triton": "t5"}[case.partition("-")[0]]
