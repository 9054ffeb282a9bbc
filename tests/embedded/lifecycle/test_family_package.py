"""A serving family of another package: built, installed, published, deployed and called."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.workbench import Workbench
from tools.installed import build_wheel

pytestmark = [pytest.mark.size("all"), pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "samples" / "family-package"
MODEL = "capitals"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    # A build writes into the sources.
    sources = shutil.copytree(SAMPLE, tmp_path_factory.mktemp("sources") / "package")
    uv = str(Path(sys.executable).with_name("uv"))
    build_wheel(wheels, sources)
    (wheel,) = wheels.glob("*.whl")
    install = (uv, "pip", "install", "--offline", "--no-deps", "--target", str(site), str(wheel))
    subprocess.run(install, check=True, capture_output=True)
    return site


@pytest.fixture(scope="module")
def bench(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site))
        with Workbench(tmp_path_factory.mktemp("project")) as bench:
            bench.bootstrap()
            bench.deploy_foundation()
            table = bench.project / "tables" / "capitals"
            table.mkdir(parents=True)
            (table / "table.json").write_text('{"France": "Paris"}')
            yield bench


def test_a_model_of_the_family_lives_its_whole_life(bench):
    written = bench.must(
        *("slipway", "init", MODEL, "--container", "lookup", "--family", "table"),
        *("--parameters", "1", "--instance", "ml.c5.large", "--sample", "tables/capitals"),
        *("--latency-milliseconds", "50"),
    )
    assert written.startswith(f"model_configs/{MODEL}.yaml written.")
    config = bench.config(MODEL)
    line = '  version: "1.0.0"\n'
    assert line in config.read_text()

    config.write_text(config.read_text().replace(line, f"{line}  workers: 4\n"))
    assert bench.fails("slipway", "validate", MODEL) == (
        "1 problem\n"
        f"- model_configs/{MODEL}.yaml:21:3: serving.workers: 4 workers need as many vCPUs, and "
        "ml.c5.large has 2 [SW488]\n"
        "    Set `workers: 2`, or choose a larger type.\n"
    )
    config.write_text(config.read_text().replace("workers: 4", "workers: 2"))
    assert "Allowed here: container, version, workers." in bench.fails(
        "slipway", "validate", _misspelt(bench)
    )

    assert bench.fails("slipway", "schema", "--check").startswith(
        "1 problem\n- model_configs/schema"
    )
    bench.must("slipway", "schema")
    schema = json.loads((bench.project / "model_configs" / "schema.json").read_text())
    assert schema["$defs"]["LookupServing"]["required"] == ["container", "version"]

    bench.must("slipway", "publish", MODEL)
    plan = bench.must("slipway", "plan", MODEL, "--env", "local")
    assert (
        "image                    123456789012.dkr.ecr.us-east-1.amazonaws.com/lookup-server:1.0"
        in plan
    )
    assert "env LOOKUP_WORKERS       2\n" in plan

    bench.deploy(MODEL)
    assert bench.ask(f"{MODEL}-local", {"inputs": "France"}) == {"answer": "Paris"}
    bench.destroy(MODEL)


def _misspelt(bench: Workbench) -> str:
    """Adds a config with a misspelt field of the package's section; returns its name."""
    name = f"{MODEL}-misspelt"
    text = bench.config(MODEL).read_text()
    changed = text.replace(f"name: {MODEL}", f"name: {name}").replace("workers:", "worker:")
    bench.config(name).write_text(changed)
    return name
