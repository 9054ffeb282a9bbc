"""The generated pages of docs are up to date, and explain every variable and metric."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from containers.jobs.paths import JobPaths
from containers.neuron.settings import EncoderSettings
from containers.serving.prometheus import PrometheusMetrics
from containers.serving.settings import ServingSettings
from containers.tensorrt.settings import GenerationSettings
from slipway.planning.families.lmi import variables as lmi_variables
from slipway.project import Project
from tests.support.pages import ROOT
from tools.reference import metrics, variables
from tools.reference.__main__ import pages

PAGES = pages()
LONGEST_MEANING_WORDS = 25
TEMPLATES = sorted((ROOT / "tests" / "golden" / "templates").glob("*.json"))


@pytest.mark.parametrize(("name", "text"), PAGES.items())
def test_the_page_in_docs_is_up_to_date(name, text):
    assert (ROOT / "docs" / name).read_text("utf-8") == text, "run python -m tools.reference"


@pytest.mark.parametrize("settings", [ServingSettings, GenerationSettings, EncoderSettings])
def test_every_variable_of_a_container_is_explained_in_a_few_words(settings):
    read = variables.read_by(settings.read)
    assert len(read) >= 4
    for variable in read:
        assert variable.meaning.endswith("."), variable
        assert len(variable.meaning.split()) <= LONGEST_MEANING_WORDS, variable
        assert variable.values, variable
        assert variable.without or variable.default is not None, variable


def test_every_variable_that_slipway_sets_for_other_servers_is_explained():
    project = Project(ROOT)
    assert variables.lmi_variables(project).keys() <= variables.lmi_meanings().keys()
    server = set(lmi_variables.SERVER_VARIABLES.values())
    assert server <= variables.lmi_meanings().keys()


def test_every_variable_that_the_programs_read_is_on_the_page():
    reads = re.compile(r"environ(?:ment)?(?:\.get\(|\[)\s*\"([A-Z][A-Z_]+)\"")
    found = {
        name
        for folder in ("slipway", "embedded_aws")
        for path in (ROOT / folder).rglob("*.py")
        for name in reads.findall(path.read_text("utf-8"))
    }
    # What a WSGI server hands to an application, and what the container's own process gets.
    found -= {"CONTENT_LENGTH", "CONTENT_TYPE", "PATH_INFO", "QUERY_STRING"}
    found -= {"REQUEST_METHOD", "REQUEST_URI"}
    found -= {"HOME", "PYTHONPATH", "SM_MODEL_DIR"}
    found = {name for name in found if not name.startswith("HTTP_")}
    assert found == variables.PROGRAM_VARIABLES.keys()
    assert set(variables.option_variables()) == {"SLIPWAY_ENV", "SLIPWAY_LOCAL_PORT"}


def test_the_defaults_of_a_jobs_paths_are_those_of_the_job():
    read, _ = JobPaths.read({name: f"/{name}" for name, _, _ in variables._JOB_VARIABLES})
    assert sorted(map(str, vars(read).values())) == sorted(
        f"/{name}" for name, _, _ in variables._JOB_VARIABLES
    )
    defaults = {default for _, default, _ in variables._JOB_VARIABLES}
    assert defaults == {str(path) for path in vars(JobPaths()).values()}


def resources(kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in TEMPLATES:
        for name, resource in json.loads(path.read_bytes())["Resources"].items():
            if resource["Type"] == kind:
                yield name, resource["Properties"]


def test_the_metrics_of_autoscaling_are_those_of_the_templates():
    tracked = [
        policy["TargetTrackingScalingPolicyConfiguration"]
        for _, policy in resources("AWS::ApplicationAutoScaling::ScalingPolicy")
        if policy["PolicyType"] == "TargetTrackingScaling"
    ]
    predefined = {
        each["PredefinedMetricSpecification"]["PredefinedMetricType"]
        for each in tracked
        if "PredefinedMetricSpecification" in each
    }
    listed = metrics.SCALING_METRICS
    assert predefined == {name for name, _, _ in listed.values() if name}
    customized = {
        each["CustomizedMetricSpecification"]["MetricName"]
        for each in tracked
        if "CustomizedMetricSpecification" in each
    }
    assert customized == {name for name, (predefined, _, _) in listed.items() if not predefined}


@pytest.mark.parametrize(
    ("container", "settings"), [("tensorrt", GenerationSettings), ("neuron", EncoderSettings)]
)
def test_the_metrics_of_a_container_are_those_that_it_serves(container, settings):
    kept = PrometheusMetrics()
    predictor = {
        "tensorrt": metrics.TextGenerationPredictor,
        "neuron": metrics.EncoderPredictor,
    }[container]
    metrics.ModelServer(predictor(settings(), metrics=kept), ServingSettings(), metrics=kept)
    served = dict(re.findall(r"^# TYPE (slipway_\S+) (\S+)$", kept.text().decode(), re.MULTILINE))
    served = {name: kind for name, kind in served.items() if not name.endswith("_created")}
    found = metrics.served_metrics()[container]
    assert {metric.name: metric.kind for metric in found.values()} == served
