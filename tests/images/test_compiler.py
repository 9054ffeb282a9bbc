"""The image that compiles, run as a training job runs it, without a GPU and without a network."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from slipway.embedded_aws.containers.engine import Engine
from slipway.embedded_aws.training.run import Layout
from tests.images.families import FAMILIES, ROOT
from tests.support.containers import Client, container, image_config, isolated
from tests.support.groups import COMPILER_IMAGE
from tools.images.build import Built, build
from tools.images.catalogue import SERVING, catalogue, compilers

pytestmark = [
    pytest.mark.compiler_image,
    # PyTorch is installed anew where the image's sources changed.
    pytest.mark.timeout(3600),
]

SAMPLE = ROOT / "samples/gpt2-autocomplete/model"
CHECKPOINT = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)
LIMITS = {"max_batch_size": "4", "max_input_tokens": "32", "max_new_tokens": "32"}


@pytest.fixture(scope="module")
def compiler(engine: Engine) -> Built:
    (image,) = (each for each in compilers() if each.name == COMPILER_IMAGE)
    return build(engine, image, lambda _: None, may_pull=False)


@pytest.fixture(scope="module")
def serving(engine: Engine, compiler: Built) -> Built:
    (image,) = (each for each in catalogue() if each.compiler == compiler.image)
    assert image.target == SERVING
    return build(engine, image, lambda _: None, may_pull=False)


@pytest.fixture(scope="module")
def client(engine: Engine, serving: Built) -> Iterator[Client]:
    with closing(Client(engine, serving.image.tag)) as client:
        yield client


def run_job(
    engine: Engine, compiler: Built, root: Path, hyperparameters: Mapping[str, str]
) -> tuple[int, Layout]:
    """Runs a training job; returns its exit code and its directories."""
    layout = Layout(root)
    source = {"S3DataSource": {"S3Uri": "s3://bucket/weights/", "S3DataType": "S3Prefix"}}
    layout.make(
        {
            "InputDataConfig": [{"ChannelName": "weights", "DataSource": source}],
            "HyperParameters": hyperparameters,
            "ResourceConfig": {"InstanceType": "ml.m5.xlarge"},
        }
    )
    for name in CHECKPOINT:
        shutil.copyfile(SAMPLE / name, layout.channel("weights") / name)
    options = ["--network=none", f"--volume={root}:/opt/ml"]
    # SageMaker names the command in the same place.
    with container(engine, compiler.image.tag, *options, command=["compile"]) as found:
        return found.exit_code(), layout


def test_the_image_that_serves_answers_with_a_model_that_it_compiled(
    engine: Engine, compiler: Built, serving: Built, client: Client, tmp_path: Path
) -> None:
    code, layout = run_job(engine, compiler, tmp_path / "ml", {"target": "cpu", **LIMITS})
    assert code == 0, layout.failure()
    family = FAMILIES["tensorrt"]
    with container(engine, serving.image.tag, *isolated(client, layout.model)) as found:
        found.until_ready(client)
        answer = client.ask("/invocations", family.request)
    assert (answer.status, answer.json()) == (200, family.expected(tmp_path))


def test_a_job_that_fails_says_why(engine: Engine, compiler: Built, tmp_path: Path) -> None:
    code, layout = run_job(engine, compiler, tmp_path / "ml", {"target": "gpu", **LIMITS})
    assert code == 1
    expectation = 'cpu, or a compute capability such as "sm86"'
    assert layout.failure() == f'hyperparameter target="gpu" is not {expectation}'


def test_it_starts_as_the_image_that_serves_does(
    engine: Engine, compiler: Built, serving: Built
) -> None:
    compiles, serves = (image_config(engine, each.image.tag) for each in (compiler, serving))
    assert compiles["Cmd"] == ["compile"]
    for name in ("Entrypoint", "StopSignal"):
        assert compiles[name] == serves[name]
