"""Each image that serves, built and run by a Docker engine, with no network and few rights."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name

from tests.images.families import Tried
from tests.support.containers import Container, container, image_config, isolated
from tests.support.waiting import eventually
from tools.images.catalogue import Image
from tools.images.sbom import write_sbom

pytestmark = [
    pytest.mark.images,
    pytest.mark.timeout(900),
]

FIRST_PROCESS = "/opt/slipway/venv/bin/dumb-init"


def started(tried: Tried, **variables: str) -> AbstractContextManager[Container]:
    """Starts the image with its sample, and with variables beside the family's."""
    family = tried.family
    options = isolated(tried.client, family.model, **{**family.variables, **variables})
    return container(tried.engine, tried.tag, *options)


def test_what_sagemaker_reads_of_an_image(tried: Tried) -> None:
    config = image_config(tried.engine, tried.tag)
    label = "com.amazonaws.sagemaker.capabilities.accept-bind-to-port"
    assert config["Labels"][label] == "true"
    assert config["Entrypoint"][0] == FIRST_PROCESS
    assert config["Cmd"] == ["serve"]
    assert config["StopSignal"] == "SIGTERM"
    # Podman leaves out what is empty.
    assert config.get("User", "") == ""
    assert config["ExposedPorts"] == {"8080/tcp": {}}


def test_it_adds_few_megabytes_to_its_base(tried: Tried) -> None:
    own_mb = (tried.built.size_bytes - tried.built.base_size_bytes) / 1e6
    assert own_mb < tried.family.own_mb


def test_its_bill_of_materials_is_whole(tried: Tried, tmp_path: Path) -> None:
    write_sbom(tried.engine, tried.built, tmp_path)
    name = tried.built.image.name
    text = (tmp_path / f"{name}.cdx.json").read_text("utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    image = document["metadata"]["component"]
    assert image["version"] == f"{tried.built.image.base_tag}-{tried.built.sources}"
    assert {"name": "slipway:base", "value": tried.built.base} in image["properties"]
    components = document["components"]
    for component in components:
        assert component["version"]
        assert component["licenses"][0]["expression"]
    listed = {
        f"{canonicalize_name(each['name'])}=={each['version']}"
        for each in components
        if each.get("purl", "").startswith("pkg:pypi/")
    }
    # Exactly the packages that the Dockerfile installs, at their pinned versions.
    assert listed == pins(tried.built.image)
    licences = (tmp_path / f"{name}.licences.txt").read_text("utf-8").splitlines()
    assert len(licences) == len(components)


def pins(image: Image) -> set[str]:
    """The pins of the lists that the Dockerfile takes for a base."""
    version = ".".join(map(str, image.python))
    tag = image.base.partition("@")[0].rpartition(":")[2]
    folder = image.dockerfile.parent
    wanted = (f"python{version}", tag) if image.family == "triton" else ("", tag)
    files = [folder / f"requirements{'-' if each else ''}{each}.txt" for each in wanted]
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    return {line.partition(" ")[0] for line in lines if "==" in line.partition(" ")[0]}


def test_it_changes_no_package_of_the_bases_system(tried: Tried) -> None:
    def packages(name: str) -> str:
        options = ("--rm", "--network=none", "--entrypoint=sha256sum")
        return tried.engine.answer("run", *options, name, "/var/lib/dpkg/status")

    assert packages(tried.tag) == packages(tried.built.base)


def test_it_serves_as_the_program_does_and_sigterm_waits_for_the_request_in_flight(
    tried: Tried, tmp_path: Path, record_testsuite_property: Callable[[str, object], None]
) -> None:
    begun = time.monotonic()
    with ready_for_requests_that_wait(tried) as (found, statuses):
        seconds = time.monotonic() - begun
        # No connection, then no model, then both.
        assert [each for each in statuses if each] == [503, 200]
        answer = tried.client.ask("/invocations", tried.family.request)
        assert (answer.status, answer.json()) == (200, tried.family.expected(tmp_path))
        if not tried.family.is_tritons:
            assert all("event" in json.loads(line) for line in found.log())
        record_testsuite_property(f"{tried.built.image.name} start_seconds", round(seconds, 1))
        assert seconds < tried.family.start_seconds
        hold_a_request(tried)
        found.signal("TERM")
        if not tried.family.is_tritons:
            eventually(lambda: any('"event": "draining"' in line for line in found.log()))
        # A second one changes nothing.
        found.signal("TERM")
        assert tried.client.finish().status == 200
        assert found.exit_code() == 0


@pytest.mark.usefixtures("once_a_family")
def test_it_listens_on_the_port_that_sagemaker_names(tried: Tried) -> None:
    with started(tried, SAGEMAKER_BIND_TO_PORT="8765") as found:
        found.until_ready(tried.client, port=8765)
        assert tried.client.ask("/ping").status == 0


def ends_in_order(tried: Tried, seconds: float) -> None:
    """Sends SIGTERM some time after the start: it is hit at different steps."""
    with started(tried) as found:
        time.sleep(seconds)
        found.signal("TERM")
        begun = time.monotonic()
        # 143: the signal came before the program had a handler.
        assert found.exit_code() in (0, 143)
        assert time.monotonic() - begun < 10


def test_sigterm_at_once_ends_it_in_order(tried: Tried) -> None:
    ends_in_order(tried, 0.1)


@pytest.mark.usefixtures("once_a_family")
def test_sigterm_during_the_start_ends_it_in_order(tried: Tried) -> None:
    ends_in_order(tried, 1.0)


@contextmanager
def ready_for_requests_that_wait(tried: Tried) -> Iterator[tuple[Container, list[int]]]:
    """Starts the image; yields it once it is ready, with the statuses of /ping until then."""
    with started(tried, SLIPWAY_METRICS_PORT="8081", **tried.family.waits) as found:
        yield found, found.until_ready(tried.client)


def hold_a_request(tried: Tried) -> None:
    """Sends a request, and returns once the container has it and has not answered."""
    family = tried.family
    tried.client.hold("/invocations", family.request, family.unsent)

    def is_there() -> bool:
        page = tried.client.ask("/metrics", port=8081).body.decode()
        count = re.search(family.in_flight, page)
        return count is not None and count[1] == "1"

    eventually(is_there)


@pytest.mark.usefixtures("once_a_family")
def test_sigkill_breaks_the_connection_and_a_restart_serves(tried: Tried) -> None:
    with ready_for_requests_that_wait(tried) as (found, _):
        hold_a_request(tried)
        found.signal("KILL")
        assert found.exit_code() == 128 + 9
        # No status and no half of an answer.
        assert tried.client.finish().status == 0
        found.restart()
        found.until_ready(tried.client)
        assert tried.client.ask("/invocations", tried.family.request).status == 200
