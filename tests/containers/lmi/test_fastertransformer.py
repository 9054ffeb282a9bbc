"""How the FasterTransformer handler calls each release's library, which is a stand-in here."""

import pytest

from tests.containers.lmi.libraries import GPT2, T5

# Release, engine: where FasterTransformer runs inside Triton, and where it does not.
TRITON = [("0.23", "Python"), ("0.24", "Python")]
PLACES = [
    *((release, "FasterTransformer") for release in ("0.21", "0.22", "0.23", "0.24")),
    ("0.21", "Python"),
    *TRITON,
]


def generated(document):
    return [entry["generated_text"] for entry in document]


@pytest.mark.parametrize("config", [GPT2, T5], ids=["gpt2", "t5"])
@pytest.mark.parametrize(("release", "engine"), PLACES)
def test_every_stand_in_release_gives_each_request_of_a_batch_its_own_new_text(
    fastertransformer_server, journal, release, engine, config
):
    server = fastertransformer_server(release, config).started(
        engine=engine, tensor_parallel_degree="4", model_id="/mnt/w"
    )
    assert journal.loaded == [{"model": "/mnt/w", "degrees": (4, 1)}]
    answers = server.post_together(
        {"inputs": ["abc", "x"], "parameters": {"max_new_tokens": 2}},
        {"inputs": "m", "parameters": {"max_new_tokens": 2, "return_full_text": True}},
        {"inputs": ""},
        {"inputs": "abc", "parameters": {"max_new_tokens": 3}},
    )
    assert [status for status, _ in answers] == [200] * 4
    assert generated(answers[0][1]) == ["de", "yz"]
    assert generated(answers[1][1]) == ["mno"]
    assert answers[2][1]["error"]["code"] == "invalid_request"
    assert generated(answers[3][1]) == ["def"]
    assert [call["prompts"] for call in journal.calls] == [["abc", "x", "m"], ["abc"]]


@pytest.mark.parametrize("config", [GPT2, T5], ids=["gpt2", "t5"])
@pytest.mark.parametrize(("release", "engine"), PLACES)
def test_seeds_and_draws_mean_the_same_in_every_stand_in_release(
    fastertransformer_server, journal, release, engine, config
):
    server = fastertransformer_server(release, config).started(engine=engine)
    parameters = {"do_sample": True, "max_new_tokens": 12}
    seeded = {"inputs": ["ab", "ab"], "parameters": {**parameters, "seed": 7}}
    first, second = generated(server.post(seeded)[1])
    assert first.isupper()
    assert first != second
    together = server.post_together({"inputs": "ab", "parameters": parameters}, seeded)
    assert generated(together[1][1]) == [first, second]
    drawn = generated(server.post({"inputs": ["ab", "ab"], "parameters": parameters})[1])
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    ("parameters", "values"),
    [
        ({}, (1, 0.0, 1.0, 1.0)),
        ({"repetition_penalty": 2}, (1, 0.0, 1.0, 2.0)),
        ({"do_sample": True, "seed": 1}, (0, 1.0, 1.0, 1.0)),
        ({"do_sample": True, "seed": 1, "top_k": 9, "temperature": 2}, (9, 1.0, 2.0, 1.0)),
        ({"do_sample": True, "seed": 1, "top_p": 0.5}, (0, 0.5, 1.0, 1.0)),
    ],
)
@pytest.mark.parametrize("config", [GPT2, T5], ids=["gpt2", "t5"])
@pytest.mark.parametrize(("release", "engine"), PLACES)
def test_parameters_reach_the_stand_in_by_its_names(
    fastertransformer_server, journal, release, engine, config, parameters, values
):
    server = fastertransformer_server(release, config).started(engine=engine)
    assert server.post({"inputs": "ab", "parameters": parameters})[0] == 200
    names = ("top_k", "top_p", "temperature", "repetition_penalty")
    expected = dict(zip(names, values, strict=True))
    if (release, engine) in TRITON:
        expected = {name: [value] for name, value in expected.items()}
    call = {name: value for name, value in journal.calls[0].items() if name in expected}
    assert call == expected


@pytest.mark.parametrize(("release", "engine"), TRITON)
@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        # What comes back from tokens is not always what was sent: " ," has become ",".
        ("one , two", "pq"),
        # The prompt's end and the answer's start may become one.
        ("ab", "cd"),
    ],
)
def test_the_prompt_is_cut_off_as_triton_gives_it_back(
    fastertransformer_server, release, engine, prompt, answer
):
    server = fastertransformer_server(release).started(engine=engine)
    body = {"inputs": prompt, "parameters": {"max_new_tokens": 2}}
    assert generated(server.post(body)[1]) == [answer]
    body["parameters"]["return_full_text"] = True
    assert generated(server.post(body)[1]) == [prompt + answer]


def test_a_prompt_of_t5_may_be_longer_than_any_number_of_positions(fastertransformer_server):
    server = fastertransformer_server("0.21", {**T5, "max_position_embeddings": 8}).started()
    status, document = server.post({"inputs": "a" * 600, "parameters": {"max_new_tokens": 1}})
    assert (status, generated(document)) == (200, ["b"])


def test_a_prompt_of_gpt_may_not(fastertransformer_server):
    server = fastertransformer_server("0.21").started()
    assert server.refusal({"inputs": "a" * 64}) == "Input 0 has 64 tokens; the limit is 63."


def test_top_k_is_held_to_what_the_library_knows(fastertransformer_server):
    server = fastertransformer_server("0.23").started()
    body = {"inputs": "a", "parameters": {"do_sample": True, "top_k": 1025}}
    assert server.refusal(body) == "top_k=1025 is not within 1 to 1024."


@pytest.mark.parametrize("release", ["0.23", "0.24"])
def test_code_of_the_checkpoint_runs_only_where_allowed(fastertransformer_server, journal, release):
    fastertransformer_server(release).started(trust_remote_code="true")
    assert journal.loaded[0]["trust_remote_code"] is True


def test_options_that_cannot_be_followed_are_named_together(fastertransformer_server, journal):
    server = fastertransformer_server("0.24")
    with pytest.raises(Exception, match=r"^serving\.properties: ") as caught:
        server.start(tensor_parallel_degree="max", dtype="float16", enable_streaming="True")
    assert str(caught.value) == (
        "serving.properties: option.enable_streaming=True does not go with this model.py, which "
        "takes false; option.tensor_parallel_degree=max is not a whole number within 1 to "
        "1000000; option.dtype=float16 does not go with this model.py, which takes fp32 or fp16 "
        "or bf16 or int8"
    )
    assert not journal.loaded
