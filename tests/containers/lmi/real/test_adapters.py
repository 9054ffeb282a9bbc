"""The guide of LoRA adapters on the real DJL Serving and vLLM itself, on the CPU."""

import pytest

from demo import copy_project
from slipway.embedded_aws import control
from tests.containers.lmi.real import servers
from tests.containers.lmi.real.test_shipped_vllm import PYTHON, VERSION
from tests.support.page_runs import run_page

pytestmark = [pytest.mark.djl_serving, pytest.mark.vllm, pytest.mark.timeout(900)]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("DJL_SERVING_HOME", str(servers.home_of(VERSION).path))
    monkeypatch.setenv("SLIPWAY_DJL_PYTHON", str(PYTHON))
    copy_project(tmp_path)
    yield tmp_path
    control.stop(tmp_path)


@pytest.mark.cdk
def test_the_guide_runs_on_vllm_itself(project):
    run_page(servers.ROOT / "docs" / "guides" / "adapters.md", project)
