"""A family that Slipway does not have: one module and the list of its entry points.

It is validated, planned, published, deployed and invoked on the embedded AWS, and no file of
Slipway is changed for it.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.workbench import Workbench

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(900)]

HERE = Path(__file__).parent
CONFIG = """\
name: toy
model:
  family: other
  parameters: 1
serving:
  container: toy
  greeting: Hello
artifacts:
  sample:
    path: samples/toy
endpoint:
  instances: [ml.c5.large]
alarms:
  model_latency_p99_milliseconds: 100
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    installed = tmp_path_factory.mktemp("installed")
    shutil.copy2(HERE / "toy.py", installed)
    metadata = installed / "toy-1.0.dist-info"
    metadata.mkdir()
    shutil.copy2(HERE / "entry_points.txt", metadata)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(installed))
        with Workbench(tmp_path_factory.mktemp("project")) as bench:
            bench.bootstrap()
            bench.config("toy").write_text(CONFIG, "utf-8")
            sample = bench.project / "samples" / "toy"
            sample.mkdir()
            (sample / "mark").write_text("!\n", "utf-8")
            yield bench


def test_its_section_and_its_rule_are_checked(bench: Workbench) -> None:
    bench.must("slipway", "validate", "toy")
    bench.config("rude").write_text(
        CONFIG.replace("name: toy", "name: rude").replace("Hello", "Hey"), "utf-8"
    )
    assert "rude.yaml:7:3: serving.greeting: `Hey` is no greeting" in bench.fails(
        "slipway", "validate", "rude"
    )
    bench.config("rude").write_text(
        CONFIG.replace("name: toy", "name: rude").replace("greeting:", "greetings:"), "utf-8"
    )
    assert "Did you mean `greeting`?" in bench.fails("slipway", "validate", "rude")
    bench.config("rude").unlink()


def test_it_lives_on_the_embedded_aws(bench: Workbench) -> None:
    bench.deploy("foundation", context="toy")
    bench.must("slipway", "publish", "toy")
    plan = json.loads(bench.must("slipway", "plan", "toy", "--json"))
    assert plan["container_environment"] == {"TOY_GREETING": "Hello"}
    assert plan["image"]["repository"] == "example/toy"
    bench.deploy("toy", context="toy")
    answer = bench.client("sagemaker-runtime").invoke_endpoint(
        EndpointName="toy-local", ContentType="text/plain", Body=b"yot"
    )
    assert answer["Body"].read() == b"Hello toy!"
    bench.destroy("toy")
    assert bench.stack_status("toy-local") is None
