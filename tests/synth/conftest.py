"""One project, synthesised once as the CDK CLI would: models that are right beside others."""

import pytest

from slipway.project import Project
from tests.support.projects import write_project
from tests.synth.assemblies import MODELS, Assembly, synthesised


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = write_project(
        tmp_path_factory.mktemp("project"), MODELS, published=["fixed", "scaled", "stale"]
    )
    config = root / "model_configs" / "stale.yaml"
    config.write_text(config.read_text("utf-8").replace("samples/tiny", "samples/other"))
    return Project(root)


@pytest.fixture(scope="session")
def assembly(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    directory = tmp_path_factory.mktemp("cdk.out")
    return synthesised(project, directory, validates=True)
