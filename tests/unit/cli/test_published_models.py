"""Models as people deploy them: `slipway init` asks only for a latency, and memory is planned.

Sizes are those of the published checkpoints, and caches follow from vLLM's own specifications.
`pytest tests/unit/cli/test_published_models.py --update-golden` writes the table of the page
docs/guides/models.md anew.
"""

import contextlib
import functools
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from slipway.cli.main import app
from slipway.facts.instances import instance_types
from slipway.planning.families import deployment_of
from slipway.planning.memory import estimate
from slipway.planning.memory_estimate import MemoryEstimate
from slipway.planning.plan import DeploymentPlan
from slipway.project import Project
from tests.support.pages import ROOT
from tests.support.projects import write_project
from tests.support.published_models import published_models, write_published
from tests.unit.cli.first_configs import ENVIRONMENTS

PAGE = ROOT / "docs" / "guides" / "models.md"
MODELS = published_models()
BEGIN = "<!-- begin published models -->"
GIB = 2**30
# What makes vLLM's handler embed, and the handler that classifies.
EMBEDDING_TASKS = {"text-embedding", "feature-extraction"}
CLASSIFIER = "djl_python.huggingface"
# What an engine computes in where the weights are stored in fp32.
HALVES = {"fp16", "bf16"}
# Methods of several widths: without a size in the config, the plan takes the widest.
OF_ANY_WIDTH = {"compressed_tensors", "bitsandbytes"}


@dataclass(frozen=True)
class Planned:
    """What `init` wrote, and the plan that comes of it."""

    config: dict[str, Any]
    plan: DeploymentPlan
    by_shape: MemoryEstimate
    """The estimate if the config did not have the files' size."""

    @property
    def memory(self) -> MemoryEstimate:
        assert self.plan.memory is not None
        return self.plan.memory


def slipway(root: Path, *arguments: str) -> None:
    with contextlib.chdir(root):
        ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, (ended.output, ended.exception)


def made(root: Path, name: str) -> Planned:
    """Runs `slipway init` for a model, in one project for all."""
    model = MODELS[name]
    weights = f"checkpoints/{model.slug}"
    write_published(model, root / weights)
    slipway(root, "init", model.slug, "--weights", weights, "--latency-milliseconds", "2000")
    slipway(root, "validate", model.slug)
    shutil.rmtree(root / weights)
    project = Project(root)
    environment = project.environment("ci")
    plan = project.plan(model.slug, environment, allow_unpublished=True)
    config = project.config(model.slug, environment.name).config
    artifacts = config.artifacts.model_copy(update={"size_gb": None})
    unsized = deployment_of(config.model_copy(update={"artifacts": artifacts}), environment)
    by_shape = estimate(unsized, instance_types()[config.endpoint.instances[0]])
    assert by_shape is not None
    return Planned(yaml.safe_load(project.files[model.slug].read_text("utf-8")), plan, by_shape)


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    root = write_project(tmp_path_factory.mktemp("published"), {}, environments=ENVIRONMENTS)
    return functools.cache(functools.partial(made, root))


@pytest.mark.parametrize("name", MODELS, ids=[each.slug for each in MODELS.values()])
def test_init_reads_what_is_published(name, planned):
    model, found = MODELS[name], planned(name)
    network, serving, memory = found.config["model"], found.config["serving"], found.memory
    embeds = serving.get("options", {}).get("task") in EMBEDDING_TASKS
    assert embeds == (model.task == "embedding")
    classifies = serving.get("entry_point") == CLASSIFIER
    assert classifies == (model.task in {"classification", "reranking"})
    assert network["family"] == model.config["model_type"].replace("-", "_")
    assert network["architecture"] == model.config["architectures"][0]
    assert network["parameters"] == model.parameters
    halved = model.config.get("torch_dtype") == "float32" and memory.dtype in HALVES
    weights = model.stored_bytes / (2 if halved else 1)
    assert memory.copy_weights_gib * GIB == pytest.approx(weights, rel=0.1)
    by_shape = found.by_shape.copy_weights_gib * GIB
    if network.get("quantization") in OF_ANY_WIDTH:
        assert by_shape > weights
    else:
        assert by_shape == pytest.approx(weights, rel=0.1)
    cache = 0
    if model.cache:
        tokens = serving["max_input_tokens"] + serving["max_new_tokens"]
        requests, degree = serving["max_rolling_batch_size"], serving["tensor_parallel_degree"]
        cache = model.cache_bytes(tokens, requests, degree)
    assert memory.cache_gib == pytest.approx(cache / GIB, abs=0.002)


def test_the_page_lists_forty_models_of_every_kind_with_their_results(planned, request):
    assert len(MODELS) == 40
    assert min(each.published for each in MODELS.values()) >= "2024-01"
    assert {each.task for each in MODELS.values()} == {
        "chat", "classification", "embedding", "generation", "reranking", "vision",
    }  # fmt: skip
    block = "\n".join([f"{BEGIN}\n", *table(planned), "\n<!-- end -->"])
    text = PAGE.read_text("utf-8")
    page = re.sub(f"{BEGIN}.*?<!-- end -->", block, text, flags=re.DOTALL)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page, "utf-8")
    assert page == PAGE.read_text("utf-8")


def table(planned: Callable[[str], Planned]) -> Iterator[str]:
    heads = "model | task | `family` | parameters | stored, weights, cache: GiB | runs on | image"
    yield f"| {heads} |"
    yield "|---|---|---|---|---|---|---|"
    for model in MODELS.values():
        result = planned(model.name)
        memory, config, plan = result.memory, result.config, result.plan
        degree = config["serving"]["tensor_parallel_degree"]
        sizes = (model.stored_bytes / GIB, memory.copy_weights_gib, memory.cache_gib or 0.0)
        yield (
            f"| {model.name} | {model.task} | `{config['model']['family']}` "
            f"| {model.parameters / 1e9:.2f} billion | {'{:.1f}, {:.1f}, {:.1f}'.format(*sizes)} "
            f"| {config['endpoint']['instances'][0]}, {degree} of its GPUs | {plan.image.tag} |"
        )
