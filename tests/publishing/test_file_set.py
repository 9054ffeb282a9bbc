"""What is no whole model is refused, with every file and the reason."""

import json
import struct
from collections.abc import Mapping

import pytest

from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.families import deployment_of
from slipway.publishing.families import PACKAGING
from slipway.publishing.file_set import CONFIG, TOKENIZER, WEIGHTS, FileSet, require_whole
from tests.support.projects import LOCAL, PRODUCTION, messages, model_config

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
EVERYTHING = (CONFIG, WEIGHTS, TOKENIZER)


def safetensors(size_bytes: int = 8, *tensors: str) -> bytes:
    header: dict[str, object] = {"__metadata__": {}}
    header |= {name: {"data_offsets": [0, size_bytes]} for name in tensors or ("a",)}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size_bytes)


def index(*names: str, **tensors: str) -> bytes:
    return json.dumps({"weight_map": {name: name for name in names} | tensors}).encode()


FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
SHARDED = {
    "model.safetensors.index.json": index(a=FIRST, b=SECOND),
    FIRST: safetensors(8, "a"),
    SECOND: safetensors(8, "b"),
}
WHOLE = {"config.json": b"{}", "model.safetensors": safetensors(), "tokenizer.json": b"{}"}


def faults(
    files: Mapping[str, bytes], needs: tuple[str, ...] = EVERYTHING, *, without: str = ""
) -> list[str]:
    kept = {name: content for name, content in files.items() if name != without}
    sizes_bytes = {name: len(content) for name, content in kept.items()}

    def read(path: str, start: int, length: int) -> bytes:
        assert length > 0, "S3 refuses an empty range"
        assert path.endswith((".json", ".safetensors")) or length < 1024, "weights are not read"
        return kept[path][start : start + length]

    try:
        require_whole(FileSet("w", sizes_bytes, read), needs)
    except UserError as error:
        return [problem.message for problem in error.problems]
    return []


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"model.safetensors": safetensors(5000)},
        {"model.safetensors": safetensors(0)},
        # Left by an older format, as in many repositories.
        {"pytorch_model.bin.index.json": index("pytorch_model-1.bin")},
        {"notes.txt": b"", "sub/empty": b""},
        {"1_Pooling/config.json": b"{}"},
    ],
)
def test_a_whole_checkpoint_is_taken(files: Mapping[str, bytes]) -> None:
    assert faults({**WHOLE, **files}) == []


def test_shards_and_pickles_are_taken() -> None:
    shards = {"model.safetensors.index.json": SHARDED["model.safetensors.index.json"]}
    tokenizer = {"config.json": b"{}", "spiece.model": b"x"}
    assert faults({**tokenizer, **SHARDED}) == []
    pickled = {"pytorch_model.bin.index.json": index("p1.bin"), "p1.bin": b"pickle"}
    assert faults({**tokenizer, **pickled}) == []
    # The patterns of a config may take the other format's index alone.
    assert faults({**tokenizer, **pickled, **shards}) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            dict.fromkeys(WHOLE, POINTER),
            [f"w/{name} is a pointer of Git LFS in place of the file" for name in sorted(WHOLE)],
        ),
        ({"model.safetensors": b""}, ["w/model.safetensors is empty"]),
        (
            {"onnx/model.onnx": b"", "pytorch_model.bin": b""},
            ["w/onnx/model.onnx is empty", "w/pytorch_model.bin is empty"],
        ),
        (
            {"model.safetensors": safetensors(5000)[:-1]},
            ["w/model.safetensors has 5061 bytes, and its header tells of 5062"],
        ),
        (
            {"model.safetensors": safetensors() + b"x"},
            ["w/model.safetensors has 68 bytes, and its header tells of 67"],
        ),
        ({"model.safetensors": b"short"}, ["w/model.safetensors is no safetensors file"]),
        ({"model.safetensors": b"\xff" * 2000}, ["w/model.safetensors is no safetensors file"]),
        (
            {"model.safetensors": struct.pack("<Q", 9) + b'{"a": []}'},
            ["w/model.safetensors is no safetensors file"],
        ),
    ],
)
def test_damaged_files_are_named(files: Mapping[str, bytes], expected: list[str]) -> None:
    assert faults({**WHOLE, **files}) == expected
    # Whatever loads them.
    assert faults({**WHOLE, **files}, ()) == expected


@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_missing_shards_are_named(suffix: str) -> None:
    stem = {"safetensors": "model", "bin": "pytorch_model"}[suffix]
    name = f"{stem}.{suffix}.index.json"
    files = {**WHOLE, name: index(f"1.{suffix}", f"2.{suffix}", f"3.{suffix}")}
    files[f"2.{suffix}"] = safetensors()
    assert faults(files, without="model.safetensors") == [
        f"w lacks 1.{suffix}, 3.{suffix}, which {name} names"
    ]


@pytest.mark.parametrize(
    "content",
    [b"no JSON", b"[]", b'{"weight_map": null}', b'{"weight_map": ["a"]}', b"{}", POINTER],
)
def test_an_index_that_names_nothing(content: bytes) -> None:
    name = "model.safetensors.index.json"
    found = faults({**WHOLE, name: content}, without="model.safetensors")
    assert found[-1] == f"w/{name}: its weight_map must name the file of each weight"


@pytest.mark.parametrize(
    ("without", "fault"),
    [
        ("config.json", "w has no config.json"),
        ("model.safetensors", "w has no weights, such as model.safetensors"),
        (
            "tokenizer.json",
            "w has no tokenizer, such as tokenizer.json, or vocab.json with merges.txt",
        ),
    ],
)
def test_what_a_checkpoint_lacks(without: str, fault: str) -> None:
    assert faults(WHOLE, without=without) == [fault]
    assert faults(WHOLE, (), without=without) == []


def test_a_checkpoint_of_another_form_is_told_plainly() -> None:
    # As seamless-m4t-large has them.
    names = ("multitask_unity_large.pt", "tokenizer.model", "vocoder_36langs.pt")
    assert faults(dict.fromkeys(names, b"x")) == ["w has no config.json"]
    files = FileSet("w", dict.fromkeys(names, 1), lambda path, *_: path.encode())
    with pytest.raises(UserError) as caught:
        require_whole(files.only({"tokenizer.model"}), EVERYTHING)
    assert messages(caught.value) == [
        "w has no config.json",
        "w has no weights, such as model.safetensors. In another form it has "
        "multitask_unity_large.pt, vocoder_36langs.pt",
    ]


def test_shards_that_patterns_leave_out_have_another_remedy() -> None:
    files = FileSet("w", {name: len(body) for name, body in SHARDED.items()},
                    lambda path, start, length: SHARDED[path][start : start + length])  # fmt: skip
    with pytest.raises(UserError) as caught:
        require_whole(files.only(SHARDED.keys() - {SECOND}))
    (problem,) = caught.value.problems
    assert problem.message == f"w lacks {SECOND}, which model.safetensors.index.json names"
    assert problem.remedy == "Name them in `allow_patterns`."


def test_leftovers_of_training_are_no_weights() -> None:
    others = {"optimizer.bin": b"x", "training_args.bin": b"x"}
    found = faults({**WHOLE, **others}, without="model.safetensors")
    assert found == ["w has no weights, such as model.safetensors"]


def test_gguf_alone_is_named_with_what_loads_it() -> None:
    files = {"a.Q4.gguf": b"GGUF", "a.Q8.gguf": b"GGUF"}
    assert faults(files) == ["w has its weights as GGUF alone (a.Q4.gguf, a.Q8.gguf)"]
    assert faults({**WHOLE, **files}) == []
    assert faults(files, ()) == []


@pytest.mark.parametrize(
    ("changes", "without", "expected"),
    [
        # An earlier save in three files left two of them.
        (
            {"model-00001-of-00003.safetensors": safetensors(8, "a"),
             "model-00003-of-00003.safetensors": safetensors(8, "c")},
            "",
            "w has shards that model.safetensors.index.json does not name: "
            "model-00001-of-00003.safetensors, model-00003-of-00003.safetensors",
        ),
        (
            {"model-00001-of-00002 (1).safetensors": safetensors(8, "a")},
            "",
            f"w/model-00001-of-00002 (1).safetensors has weights that {FIRST} has too",
        ),
        (
            {SECOND: safetensors(8, "a", "b")},
            "",
            f"w/{SECOND} has weights that {FIRST} has too",
        ),
        (
            {"model.safetensors": safetensors(8, "a", "b")},
            "model.safetensors.index.json",
            f"w has shards ({FIRST}, {SECOND}) and no model.safetensors.index.json",
        ),
        (
            {SECOND: safetensors(8, "c")},
            "",
            "w lacks the weights b, which model.safetensors.index.json names",
        ),
        (
            {},
            "model.safetensors.index.json",
            f"w has shards ({FIRST}, {SECOND}) and no model.safetensors.index.json",
        ),
        (
            {"model.safetensors": safetensors(8, "a", "b")},
            "",
            f"w/{FIRST} has weights that model.safetensors has too",
        ),
        ({}, FIRST, f"w lacks {FIRST}, which model.safetensors.index.json names"),
        ({"config.json": b'{"a": '}, "", "w/config.json is no JSON object"),
    ],
)  # fmt: skip
def test_files_that_contradict_each_other(
    changes: Mapping[str, bytes], without: str, expected: str
) -> None:
    files = {name: content for name, content in WHOLE.items() if name != "model.safetensors"}
    assert faults(files | SHARDED) == []
    assert faults({**files, **SHARDED, **changes}, without=without)[0] == expected


def test_tensors_that_are_one_may_be_stored_once() -> None:
    tied = index("model.safetensors", **{"lm_head.weight": "model.safetensors"})
    files = {**WHOLE, "model.safetensors.index.json": tied}
    assert faults({**files, "model.safetensors": safetensors(8, "model.safetensors")}) == []


@pytest.mark.parametrize(
    ("files", "is_one"),
    [
        (("tokenizer.json",), True),
        (("tekken.json",), True),
        (("spiece.model",), True),
        (("sentencepiece.bpe.model",), True),
        (("qwen.tiktoken",), True),
        (("vocab.txt",), True),
        (("vocab.json", "merges.txt"), True),
        (("source.spm", "vocab.json"), True),
        (("0_Transformer/tokenizer.json",), True),
        (("vocab.json",), False),
        (("merges.txt",), False),
        (("vocab.json", "sub/merges.txt"), False),
        (("tokenizer_config.json",), False),
        (("special_tokens_map.json",), False),
    ],
)
def test_each_form_of_a_tokenizer_is_known(files: tuple[str, ...], is_one: bool) -> None:
    checkpoint = {"config.json": b"{}", "model.safetensors": safetensors()}
    found = faults(checkpoint | dict.fromkeys(files, b"{}"))
    assert ["w has no tokenizer" in each for each in found] == ([] if is_one else [True])


@pytest.mark.parametrize("config", [{"tokenizer_class": "ByT5Tokenizer"}, {"auto_map": {}}])
def test_a_tokenizer_without_a_vocabulary_is_taken(config: Mapping[str, object]) -> None:
    files = {**WHOLE, "tokenizer_config.json": json.dumps(config).encode()}
    assert faults(files, without="tokenizer.json") == []


def test_an_adapter_is_named_with_its_base() -> None:
    adapter = {
        "adapter_config.json": b'{"base_model_name_or_path": "meta-llama/Llama-2-7b"}',
        "adapter_model.safetensors": safetensors(),
    }
    assert faults(adapter) == [
        "w is an adapter (adapter_config.json) without the weights of its base, "
        "meta-llama/Llama-2-7b"
    ]
    adapter["adapter_model.safetensors"] = safetensors(8, "lora_A")
    assert faults({**WHOLE, **adapter}) == []


LMI = {"container": "lmi", "framework": "djl-lmi", "version": "0.36.0", "dtype": "fp16"}
CUSTOM = {
    "container": "custom",
    "image_uri": "210987654321.dkr.ecr.eu-west-1.amazonaws.com/own:1",
}


@pytest.mark.parametrize(
    ("serving", "environment", "needs", "loads_any"),
    [
        (None, LOCAL, {CONFIG, WEIGHTS}, False),
        (None, PRODUCTION, {CONFIG, WEIGHTS}, False),
        (LMI, PRODUCTION, {CONFIG, WEIGHTS, TOKENIZER}, False),
        ({**LMI, "options": {"skip_tokenizer_init": True}}, PRODUCTION, {CONFIG, WEIGHTS}, False),
        ({**LMI, "options": {"load_format": "auto"}}, PRODUCTION, set(EVERYTHING), False),
        ({**LMI, "options": {"load_format": "mistral"}}, PRODUCTION, set(EVERYTHING), True),
        ({**LMI, "script": "handlers/own"}, PRODUCTION, set(), True),
        (CUSTOM, PRODUCTION, set(), True),
    ],
)
def test_what_each_container_needs(
    serving: dict[str, object] | None, environment: Environment, needs: set[str], loads_any: bool
) -> None:
    config = model_config(**({"serving": serving} if serving else {}))
    deployment = deployment_of(config, environment)
    assert set(PACKAGING[deployment.container].needs(deployment)) == needs
    assert PACKAGING[deployment.container].loads_any(deployment) is loads_any
