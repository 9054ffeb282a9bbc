"""Texts in KServe's protocol: what is written is read again, and no body breaks the reader."""

import json
import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slipway.planning.families.triton.kserve import (
    BINARY,
    JSON,
    KServeError,
    KServeTexts,
    decode,
    encode,
)

TEXTS = st.lists(st.text(), min_size=1, max_size=5)


@settings(deadline=None)
@given(texts=TEXTS, direction=st.sampled_from(("inputs", "outputs")), binary=st.booleans())
@example(texts=[""], direction="inputs", binary=True)
@example(texts=["", "é\n\U0001f600", ""], direction="outputs", binary=True)
def test_texts_come_back(texts, direction, binary):
    body, content_type = encode(direction, "ANSWER", texts, binary=binary)
    assert decode(direction, "ANSWER", body, content_type) == texts


def test_a_request_in_either_form():
    request = KServeTexts().request(["speling", "é"], JSON)
    assert request.content_type == "application/json"
    assert json.loads(request.body) == {
        "inputs": [{"name": "TEXT", "shape": [2, 1], "datatype": "BYTES", "data": ["speling", "é"]}]
    }
    # A binary request asks for a binary answer.
    request = KServeTexts().request(["a", "é"], BINARY)
    header = (
        b'{"inputs":[{"name":"TEXT","shape":[2,1],"datatype":"BYTES",'
        b'"parameters":{"binary_data_size":11}}],'
        b'"outputs":[{"name":"ANSWER","parameters":{"binary_data":true}}]}'
    )
    assert request.body == header + b"\x01\0\0\0a\x02\0\0\0\xc3\xa9"
    assert request.content_type == (
        f"application/vnd.sagemaker-triton.binary+json;json-header-size={len(header)}"
    )


def test_other_tensors_are_passed_over():
    first = struct.pack("<f", 0.5)
    texts = struct.pack("<I", 2) + b"ok"
    header = json.dumps(
        {
            "model_name": "t5",
            "outputs": [
                {"name": "SCORE", "datatype": "FP32", "parameters": {"binary_data_size": 4}},
                {"name": "LENGTH", "datatype": "INT32", "data": [2]},
                {"name": "ANSWER", "datatype": "BYTES", "parameters": {"binary_data_size": 6}},
            ],
        }
    ).encode()
    content_type = f"{BINARY}; json-header-size={len(header)}"
    assert KServeTexts().answers(header + first + texts, content_type) == ["ok"]


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b"no", JSON, "the body is no JSON object with `outputs`"),
        (b"[]", JSON, "the body is no JSON object with `outputs`"),
        (b'{"outputs": 1}', JSON, "`outputs` is no list of tensors"),
        (b'{"outputs": []}', JSON, "there is no tensor ANSWER in `outputs`"),
        (b'{"outputs": [{"name": "ANSWER", "datatype": "FP32"}]}', JSON,
         "the tensor ANSWER has no texts, but FP32"),
        (b'{"outputs": [{"name": "ANSWER", "datatype": "BYTES", "data": [1]}]}', JSON,
         "the tensor ANSWER has no list of texts"),
        (b"{}", BINARY, f"the content type {BINARY!r} has no usable json-header-size"),
        (b"{}", f"{BINARY};json-header-size=3",
         f"the content type '{BINARY};json-header-size=3' has no usable json-header-size"),
    ],
)  # fmt: skip
def test_other_answers_have_no_texts(body, content_type, message):
    with pytest.raises(KServeError) as caught:
        KServeTexts().answers(body, content_type)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("data", "size", "message"),
    [
        (b"\x05\0\0\0ab", 6, "the tensor ANSWER ends within a text"),
        (b"\x05\0", 2, "the tensor ANSWER ends within a text"),
        (b"\x01\0\0\0a", 50, "the tensor ANSWER ends within a text"),
        (b"\x01\0\0\0\xff", 5, "the tensor ANSWER has bytes that are not UTF-8"),
        (b"", -1, "binary_data_size is -1"),
        (b"", "4", "binary_data_size is '4'"),
    ],
)
def test_a_binary_tensor_is_whole(data, size, message):
    tensor = {"name": "ANSWER", "datatype": "BYTES", "parameters": {"binary_data_size": size}}
    header = json.dumps({"outputs": [tensor]}).encode()
    with pytest.raises(KServeError) as caught:
        KServeTexts().answers(header + data, f"{BINARY};json-header-size={len(header)}")
    assert str(caught.value) == message


@settings(deadline=None)
@given(body=st.binary(max_size=200), size=st.integers(0, 250))
def test_any_bytes_have_texts_or_none(body, size):
    for content_type in (JSON, f"{BINARY};json-header-size={size}"):
        try:
            assert all(isinstance(text, str) for text in decode("outputs", "A", body, content_type))
        except KServeError:
            continue
