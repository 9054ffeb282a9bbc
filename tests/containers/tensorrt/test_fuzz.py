"""Ten thousand requests of every kind: an answer or an error that says why, and never a 500.

They go through the application in process. A run that is not deep sends some two hundred.
"""

import asyncio
import json
from collections import Counter

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from containers.serving.server import ModelServer
from containers.serving.settings import ServingSettings
from containers.tensorrt.openapi import openapi_document
from containers.tensorrt.parameters import Parameters, RequestLimits
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import GenerationSettings
from tests.containers.tensorrt.sample_model import model_with_template, schema_of

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
SETTINGS = GenerationSettings(max_input_tokens=16, max_new_tokens=6, default_new_tokens=3)
LIMITS = RequestLimits(SETTINGS, max_batch_size=4, max_texts=12)
DOCUMENT = openapi_document(LIMITS)
pytestmark = pytest.mark.timeout(900)

GOOD = {"inputs": "Amazon S3 bucket", "parameters": {"max_new_tokens": 2}}
GOOD_ANSWER = [{"generated_text": " name for"}]
IS_DEEP = settings.get_current_profile_name() == "deep"


def ended(document):
    """Whether the last event with text, of any form, says why the answer ended."""
    if "choices" in document:
        return bool(document["choices"][0]["finish_reason"])
    return bool(document["details"]["finish_reason"])


_CONTENT = DOCUMENT["paths"]["/invocations"]["post"]["responses"]["200"]["content"]
ANSWERS = schema_of(DOCUMENT, _CONTENT["application/json"]["schema"])


class Endpoint:
    """The program's application without its sockets, on an event loop of its own."""

    def __init__(self, runner, model_dir):
        self._runner = runner
        predictor = TextGenerationPredictor(
            SETTINGS, max_batch_size=LIMITS.max_batch_size, max_texts=LIMITS.max_texts
        )
        self.server = ModelServer(
            predictor,
            ServingSettings(
                model_dir=model_dir,
                max_batch_size=LIMITS.max_batch_size,
                max_queue_length=LIMITS.max_texts,
                max_request_bytes=20_000,
            ),
        )
        app = self.server._uvicorn.config.app
        self._client = httpx.AsyncClient(
            # What the application raises fails the test.
            transport=httpx.ASGITransport(app=app, raise_app_exceptions=True),
            base_url="http://test",
        )
        self.statuses = Counter()
        runner.run(self.server.service.load())

    def post(self, content):
        response = self._runner.run(self._client.post("/invocations", content=content))
        self.statuses[response.status_code] += 1
        return response

    def check(self, content):
        """Sends a request; what it is answered is in the document."""
        response = self.post(content)
        status = response.status_code
        assert status in (200, 400, 413), response.text
        if status != 200:
            schema_of(DOCUMENT, "Error").validate(response.json())
            assert response.json()["error"]["message"]
        elif response.headers["content-type"] == "application/json":
            ANSWERS.validate(response.json())
        else:
            events = response.text.removesuffix("\n\n").split("\n\n")
            is_openai = events[-1] == "data: [DONE]"
            documents = [
                json.loads(event.removeprefix("data:"))
                for event in events[: -1 if is_openai else None]
            ]
            end = documents[-1]
            assert end["usage"] if is_openai and not end["choices"] else ended(end)

    def check_health(self):
        """A good request is still answered, and nothing was left behind."""
        response = self.post(json.dumps(GOOD).encode())
        assert (response.status_code, response.json()) == (200, GOOD_ANSWER)
        service = self.server.service
        assert (service.requests_in_flight, service.queue_length) == (0, 0)
        assert service.memory_guard.buffered_bytes == 0

    def close(self):
        self._runner.run(self._client.aclose())
        self._runner.run(self.server.service.close())


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    model_dir = model_with_template(tmp_path_factory.mktemp("fuzz") / "model", TEMPLATE)
    with asyncio.Runner() as runner:
        opened = Endpoint(runner, model_dir)
        yield opened
        opened.close()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([2**63, 10**400, -0.0, 1e-320, "\ud800", "<|endoftext|>", "never"]),
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=5), children, max_size=4)
    ),
    max_leaves=8,
)
TEXTS = st.text(min_size=1, max_size=60)
NAMES = list(Parameters._fields)


def likely_values(fits):
    """Values that an endpoint with these limits takes, or also the values next to them."""
    beyond = 0 if fits else 1
    return {
        "max_new_tokens": st.integers(1 - beyond, 6 + beyond),
        "do_sample": st.booleans(),
        "temperature": st.floats(0.001 if fits else 0.0, 100 + beyond),
        "top_k": st.integers(1 - beyond, 5),
        "top_p": st.floats(0.01 if fits else -0.1, 1.0 + beyond / 10),
        "seed": st.integers(-beyond, 5),
        "stop": st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3),
        "num_return_sequences": st.integers(1, 2) if fits else st.integers(0, 5),
        "num_beams": st.integers(0, 5),
        "length_penalty": st.floats(-10 - beyond, 10 + beyond),
        "early_stopping": st.sampled_from([True, False, "never", *(["x"] * beyond)]),
        "return_full_text": st.booleans(),
    }


IN_RANGE, LIKELY = likely_values(fits=True), likely_values(fits=False)
# At most sixteen tokens, whatever they are made of.
SHORT_TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12)


@st.composite
def sensible_requests(draw):
    """Most of them can be answered: three in four are made to fit in every respect."""
    fits = draw(st.sampled_from([True, True, True, False]))
    values, texts = (IN_RANGE, SHORT_TEXTS) if fits else (LIKELY, TEXTS)
    names = ["max_new_tokens", "return_full_text"]
    parameters = {}
    match draw(st.sampled_from(["greedy", "sampled", "beams"])):
        case "sampled":
            parameters["do_sample"] = True
            names += ["temperature", "top_k", "top_p", "seed", "stop", "num_return_sequences"]
        case "beams":
            parameters["num_beams"] = draw(st.integers(2, 4))
            names += ["length_penalty", "early_stopping", "num_return_sequences"]
        case _:
            names += ["stop"]
    for name in draw(st.sets(st.sampled_from(names))):
        parameters[name] = draw(values[name])
    is_alone = fits and ("num_beams" in parameters or "num_return_sequences" in parameters)
    inputs = draw(texts | st.lists(texts, min_size=1, max_size=1 if is_alone else 3))
    request = {"inputs": inputs, "parameters": parameters}
    if draw(st.booleans()):
        can_stream = not fits or (not is_alone and (isinstance(inputs, str) or len(inputs) == 1))
        request["stream"] = can_stream and draw(st.booleans())
    return request


# In range, or next to it.
LIKELY_OF_OPENAI = {
    "max_tokens": st.integers(1, 6),
    "temperature": st.floats(0.0, 2.0),
    "top_p": st.floats(0.01, 1.0),
    "top_k": st.integers(1, 5),
    "n": st.integers(1, 3),
    "seed": st.integers(0, 5),
    "stop": st.text(min_size=1, max_size=3) | st.lists(st.text(min_size=1), max_size=3),
    "stream": st.booleans(),
    "stream_options": st.sampled_from([None, {"include_usage": True}, {}]),
    "frequency_penalty": st.sampled_from([0, 0.0, None, 1.0]),
    "model": SHORT_TEXTS,
}
IN_RANGE_OF_OPENAI = LIKELY_OF_OPENAI | {
    "temperature": st.just(0.0) | st.floats(0.001, 2.0),
    "frequency_penalty": st.sampled_from([0, 0.0, None]),
}


@st.composite
def openai_requests(draw):
    """Completions and chats; three in four are made to fit in every respect."""
    fits = draw(st.sampled_from([True, True, True, False]))
    values = IN_RANGE_OF_OPENAI if fits else LIKELY_OF_OPENAI
    request = {name: draw(values[name]) for name in draw(st.sets(st.sampled_from(list(values))))}
    if fits:
        # A stream has one answer, as the temperature 0 has; its options belong to no other request.
        request.pop("n" if request.get("stream") else "stream_options", None)
        if request.get("temperature") == 0:
            request.pop("n", None)
    least, most = (1, 1) if fits else (0, 2)
    if draw(st.booleans()):
        texts = st.lists(SHORT_TEXTS, min_size=least, max_size=most)
        return request | {"prompt": draw(SHORT_TEXTS | texts)}
    roles = st.sampled_from(["system", "user", "assistant", *([] if fits else ["tool"])])
    message = st.fixed_dictionaries({"role": roles, "content": SHORT_TEXTS})
    return request | {"messages": draw(st.lists(message, min_size=least, max_size=most))}


@st.composite
def odd_requests(draw):
    """The right names with any values, and other names."""
    parameters = {
        name: draw(st.one_of(LIKELY[name], JSON))
        for name in draw(st.sets(st.sampled_from(NAMES), max_size=4))
    }
    if draw(st.integers(0, 4)) == 0:
        parameters[draw(st.text(max_size=8))] = draw(JSON)
    request = {"inputs": draw(TEXTS | JSON)}
    if draw(st.integers(0, 4)):
        request["parameters"] = parameters
    if draw(st.integers(0, 3)) == 0:
        request["stream"] = draw(st.booleans() | JSON)
    if draw(st.integers(0, 6)) == 0:
        request[draw(st.text(max_size=8))] = draw(JSON)
    return request


@st.composite
def broken_bodies(draw):
    """Requests with some bytes changed, and bytes that never were a request."""
    body = json.dumps(draw(sensible_requests()), ensure_ascii=draw(st.booleans())).encode()
    begin = draw(st.integers(0, len(body)))
    end = draw(st.integers(begin, min(begin + 10, len(body))))
    return draw(
        st.sampled_from(
            [
                body[:begin] + draw(st.binary(max_size=6)) + body[end:],
                body[:begin],
                body + body[begin:],
                body[begin:end] * 50,
                body.decode().encode("utf-16"),
                draw(st.binary(max_size=200)),
                b"[" * begin * 100,
                body[:-1] + b', "inputs": "again"}',
                b" " * (20_000 - len(body)) + body,
                b" " * (20_001 - len(body)) + body,
            ]
        )
    )


def as_body(request):
    return json.dumps(request).encode()


# Bodies, how many in a deep run, and the least share of them that is answered.
KINDS = {
    "sensible": (sensible_requests().map(as_body), 3000, 0.3),
    "of OpenAI": (openai_requests().map(as_body), 2000, 0.3),
    "odd": (odd_requests().map(as_body), 4500, 0.0),
    "broken": (broken_bodies(), 2000, 0.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_is_answered_or_refused_with_the_reason(endpoint, kind):
    bodies, count, least_share = KINDS[kind]
    endpoint.statuses.clear()

    @settings(max_examples=count if IS_DEEP else count // 50, deadline=None)
    @given(body=bodies)
    @example(body=b" " * 20_001)
    def send(body):
        endpoint.check(body)

    send()
    endpoint.check_health()
    # Or the others say little.
    assert endpoint.statuses[200] > sum(endpoint.statuses.values()) * least_share
