"""Our LMI image: the handler is not in the package but on the server's path, as in the image."""

import contextlib

import pytest

from slipway import java_properties
from tests.containers.lmi.real import servers

# The last LMI version that Slipway builds an image for.
pytestmark = [pytest.mark.djl_serving, pytest.mark.djl_version(at_most="0.27.0")]

LIBRARIES = [
    "deepspeed",
    pytest.param("fastertransformer", marks=pytest.mark.djl_version(at_most="0.24.0")),
]
SETTINGS = {
    "options": {"max_new_tokens": 8},
    **servers.BATCHES_OF_ONE,
}
BODIES = [
    {"inputs": "abc", "parameters": {"max_new_tokens": 3}},
    {"inputs": ["abc", "caf\u00e9 x"], "parameters": {"max_new_tokens": 2}},
    {"inputs": "abc", "parameters": {"max_new_tokens": 9}},
    b"{",
]


@pytest.fixture(scope="module", params=LIBRARIES)
def both(request, home, aws_url, tmp_path_factory):
    library = str(request.param)
    built = servers.package_for(servers.config_of_our_image(home, library, **SETTINGS))
    managed = servers.package_for(servers.config_for(home, library, **SETTINGS))
    assert list(built) == ["serving.properties"]
    assert java_properties.parse(built["serving.properties"])["option.entryPoint"] == (
        f"slipway_{library}"
    )
    assert "model.py" in managed
    with contextlib.ExitStack() as stack:
        started = []
        for files, path in (
            (built, servers.path_in_our_image(library)),
            (managed, servers.stand_in_path(library)),
        ):
            directory = tmp_path_factory.mktemp("djl")
            server = stack.enter_context(
                servers.started(home, directory, files, aws_url=aws_url, PYTHONPATH=path)
            ).wait_until_ready()
            started.append(server)
        yield started[0], started[1]


def test_it_answers_as_awss_image_does_over_a_stand_in(both):
    built, managed = both
    answers = [built.post(body) for body in BODIES]
    assert answers == [managed.post(body) for body in BODIES]
    assert [answer.status for answer in answers] == [200, 200, 400, 400]
    assert answers[0].document == [{"generated_text": "def"}]


def test_without_the_path_of_the_image_the_model_does_not_load(home, aws_url, tmp_path_factory):
    """So that the other tests show the image's path, and nothing else, to lead to the handler."""
    files = servers.package_for(servers.config_of_our_image(home, "deepspeed", **SETTINGS))
    directory = tmp_path_factory.mktemp("djl")
    path = servers.stand_in_path("deepspeed")
    with servers.started(home, directory, files, aws_url=aws_url, PYTHONPATH=path) as server:
        assert "No module named 'slipway_deepspeed'" in server.wait_for_end()
