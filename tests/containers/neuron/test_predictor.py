"""The whole way from a body to its answer, with workers on stand-ins of the device."""

import json
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from containers.neuron.predictor import NeuronPredictor, installed_versions
from containers.neuron.settings import NeuronSettings
from containers.neuron.workers import RestartPolicy
from containers.serving.errors import InvalidRequestError
from containers.serving.metrics import Metrics
from containers.serving.predictor import ConcurrentPredictor, ModelLoadError
from tests.containers.neuron.machine import (
    VERSIONS,
    WORDS,
    answer,
    compiled_model,
    make_machine,
    opened,
    runtime,
)
from tests.containers.neuron.vocabularies import bert_tokenizer
from tests.support.messages import message_of
from tests.support.servers import captured_logs, running_server, until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

CONTEXT = "Ada Lovelace wrote the first program."


def expected_span(question, context):
    """The best span by what the stand-in computes, found by trying all of them."""
    tokenizer = bert_tokenizer(WORDS)
    encoding = tokenizer.encode(question, context)
    ids = np.array([encoding.ids])
    starts, ends = runtime.computed("question-answering", ids, np.ones_like(ids))
    columns = [column for column, text in enumerate(encoding.sequence_ids) if text == 1]
    _, first, last = max(
        (float(starts[0, i]) + float(ends[0, j]), -i, -j)
        for i in columns
        for j in columns
        if i <= j < i + 15
    )
    return encoding.offsets[-first][0], encoding.offsets[-last][1]


def test_a_question_is_answered_with_the_models_best_span(loaded):
    with loaded() as predictor:
        assert isinstance(predictor, ConcurrentPredictor)
        inputs = {"question": "Who wrote it?", "context": CONTEXT}
        parameters = {"align_to_words": False}
        found = answer(predictor, inputs=inputs, parameters=parameters)
        start, end = expected_span("Who wrote it?", CONTEXT)
        assert (found["start"], found["end"], found["answer"]) == (start, end, CONTEXT[start:end])
        assert 0 < found["score"] <= 1
        several = answer(predictor, inputs=[inputs] * 5, parameters=parameters)
        assert several == [found] * 5
        best = answer(predictor, inputs=inputs, parameters=parameters | {"top_k": 3})
        assert len(best) == 3
        assert best[0] == found


def test_a_long_context_is_answered_out_of_all_its_windows(loaded):
    # The last program is the first with a full stop, which the stand-in likes best.
    context = "the first program " * 20 + "Ada wrote it ."
    with loaded() as predictor:
        rows = predictor.parse(
            json.dumps({"inputs": {"question": "who", "context": context}}).encode()
        )
        assert len(rows) > 3
        assert {row.bucket for row in rows} == {32}
        found = answer(predictor, inputs={"question": "who", "context": context})
        assert context[found["start"] : found["end"]] == found["answer"] != ""


def test_texts_are_classified_and_their_lists_stay_lists(loaded):
    with loaded(task="sequence-classification") as predictor:
        one = answer(predictor, inputs="ada wrote it")
        assert list(one[0]) == ["label", "score"]
        assert one[0]["label"] in ("NO", "YES")
        both = answer(predictor, inputs=["ada wrote it"] * 3, parameters={"top_k": 2})
        assert [len(labels) for labels in both] == [2, 2, 2]
        assert both[0][0] == one[0]
        assert sum(label["score"] for label in both[0]) == pytest.approx(1)
        with pytest.raises(InvalidRequestError, match="inputs has 40 tokens; the limit is 30"):
            answer(predictor, inputs="ada " * 40)
        cut = answer(predictor, inputs="ada " * 40, parameters={"truncation": True})
        assert cut == answer(predictor, inputs="ada " * 30)


def test_entities_of_a_long_text_do_not_depend_on_its_windows(loaded):
    labels = ("B-A", "B-B")
    with loaded(task="token-classification", labels=labels) as predictor:
        sentence = "Ada Lovelace wrote the first program. "
        [short] = [answer(predictor, inputs=sentence.strip())]
        long = answer(predictor, inputs=sentence * 12)
        # The stand-in looks at each token by itself.
        assert [entity["word"] for entity in long] == [entity["word"] for entity in short] * 12
        assert [entity["entity_group"] for entity in long[-8:]] == [
            entity["entity_group"] for entity in short
        ]
        text = sentence * 12
        assert all(text[entity["start"] : entity["end"]] == entity["word"] for entity in long)
        assert answer(predictor, inputs=[" ", "ada"])[0] == []


def test_embeddings_are_pooled_without_padding(loaded):
    with loaded(task="embeddings") as predictor:
        [vector] = answer(predictor, inputs="ada wrote it")
        ids = np.array([bert_tokenizer(WORDS).encode("ada wrote it").ids])
        [tokens] = runtime.computed("embeddings", ids, np.ones_like(ids))
        assert vector == pytest.approx(tokens[0].mean(axis=0).tolist(), rel=1e-6)
        normalized = answer(predictor, inputs=["ada wrote it"], normalize=True)[0]
        assert sum(value**2 for value in normalized) == pytest.approx(1)


def test_a_request_with_more_windows_than_the_queue_holds_is_refused(loaded):
    with loaded(max_inputs=4) as predictor:
        inputs = {"question": "who", "context": "ada " * 100}
        message = message_of(InvalidRequestError, answer, predictor, inputs=inputs)
    assert message == (
        "The contexts up to inputs make 7 windows of 32 tokens; the endpoint's max_queue_length "
        "allows 4 in a request. Send shorter contexts, or fewer."
    )


def test_inf2_has_a_runtime_of_its_own(loaded):
    with loaded(target="inf2", workers=2, cores=2) as predictor:
        assert (predictor.concurrent_batches, predictor.batches_ahead) == (2, 2)
        found = answer(predictor, inputs={"question": "who", "context": CONTEXT})
        assert found["answer"] in CONTEXT


@pytest.mark.parametrize(
    ("installed", "message"),
    [
        (
            VERSIONS["inf1"] | {"torch-neuron": "1.12.1.2.10.0.0"},
            "it was made with torch-neuron 1.13.1.2.11.13.0, and this container has "
            "1.12.1.2.10.0.0",
        ),
        (VERSIONS["inf2"], "it needs torch-neuron, which is not installed here"),
    ],
)
def test_graphs_of_another_release_refuse_the_start(tmp_path, monkeypatch, installed, message):
    machine = make_machine(tmp_path, cores=1, versions=installed)
    machine.enter(monkeypatch)
    predictor = NeuronPredictor(NeuronSettings(), max_batch_size=2)
    assert message in message_of(ModelLoadError, predictor.load, compiled_model(tmp_path / "model"))
    assert not machine.history(0)


def test_a_python_that_is_not_there_is_named():
    assert message_of(ModelLoadError, installed_versions, "/nowhere/python", ["torch"]) == (
        "cannot start SLIPWAY_WORKER_PYTHON=/nowhere/python: No such file or directory"
    )
    with pytest.raises(
        ModelLoadError, match="SLIPWAY_WORKER_PYTHON=/bin/false does not work: exit code 1"
    ):
        installed_versions("/bin/false", ["torch"])


@pytest.fixture
def served(tmp_path, monkeypatch):
    @asynccontextmanager
    async def serve(workers, **policy):
        """A server on as many cores as workers; yields its predictor, and what asks with a word."""
        make_machine(tmp_path, cores=workers).enter(monkeypatch)
        model = compiled_model(tmp_path / "model")
        predictor = NeuronPredictor(
            NeuronSettings(workers=workers), max_batch_size=2, policy=RestartPolicy(**policy)
        )
        async with running_server(predictor, model_dir=model, max_batch_size=2) as running:

            async def ask(word):
                body = {"inputs": {"question": "who", "context": f"ada {word}"}}
                return await running.client.post("/invocations", json=body)

            yield predictor, ask

    return serve


async def test_a_server_answers_through_the_death_of_a_worker(served):
    with captured_logs() as logs:
        async with served(2, first_pause_seconds=0.01) as (predictor, ask):
            assert (await ask("wrote")).status_code == 200
            # The other worker computes it again.
            assert (await ask("crashonce")).status_code == 200
            failed = await ask("fail")
            assert (failed.status_code, failed.json()["error"]["code"]) == (500, "model_failure")
            assert (await ask("wrote")).status_code == 200
            await until(lambda: len(logs.events("worker_restarted")) == 2)
            process_ids = predictor.worker_process_ids()
    assert len(logs.events("batch_lost")) == 1
    assert len(logs.events("worker_died")) == 2
    assert not [each for each in process_ids if Path(f"/proc/{each}").exists()]


async def test_a_server_whose_workers_keep_dying_ends(served):
    with captured_logs() as logs:
        async with served(1, most_deaths=1, first_pause_seconds=0.0) as (_, ask):
            assert (await ask("crash")).status_code == 500
            await until(lambda: bool(logs.events("model_lost")))
    [stopped] = logs.events("stopped")
    assert stopped["exit_code"] == 1


def test_a_device_fills_its_free_rows_with_shorter_texts(loaded):
    with loaded(max_batch_size=4, buckets=(8, 32)) as predictor:
        waiting = [row for length in (9, 2, 9) for row in predictor.parse(body_of(length))]
        assert predictor.choose(waiting, 4) == [0, 1, 2]


def test_on_a_cpu_shorter_texts_wait_for_a_graph_of_theirs():
    with opened(Path("samples/bert-qa/model")) as predictor:
        waiting = [row for length in (40, 5, 40) for row in predictor.parse(body_of(length))]
        assert len({row.bucket for row in waiting}) == 2
        assert predictor.choose(waiting, 4) == [0, 2]


def body_of(words):
    """A question about a context of so many words."""
    inputs = {"question": "who", "context": " ".join(["the"] * words)}
    return json.dumps({"inputs": inputs}).encode()


def outputs_of(predictor, **body):
    rows = predictor.parse(json.dumps(body).encode())
    return [output for row in rows for output in predictor.predict([row])]


@pytest.mark.parametrize(
    ("task", "short", "long"),
    [
        (
            "question-answering",
            {"inputs": {"question": "who", "context": CONTEXT}},
            {
                "inputs": [{"question": "who", "context": CONTEXT}] * 40,
                "parameters": {"top_k": 10},
            },
        ),
        ("sequence-classification", {"inputs": CONTEXT}, {"inputs": [CONTEXT] * 101}),
        ("token-classification", {"inputs": CONTEXT}, {"inputs": "the first program " * 40}),
    ],
)
def test_a_long_answer_is_known_before_it_is_written(loaded, task, short, long):
    with loaded(task=task) as predictor:
        assert not predictor.renders_long(outputs_of(predictor, **short))
        assert predictor.renders_long(outputs_of(predictor, **long))


def test_the_numbers_of_vectors_count(loaded):
    with loaded(task="embeddings") as predictor:
        [vector] = outputs_of(predictor, inputs=CONTEXT)
        of_bert_base = vector * (768 // len(vector))
        assert not predictor.renders_long([of_bert_base])
        assert predictor.renders_long([of_bert_base] * 2)
        assert json.loads(predictor.render([vector] * 2)) == [vector] * 2


class CountedMetrics(Metrics):
    """Keeps what every counter has come to."""

    def __init__(self):
        self.counts = {}

    def counter(self, name, description):
        def add(value):
            self.counts[name] = self.counts.get(name, 0) + value

        return add


@pytest.mark.parametrize("graphs", ["one", "one each"])
def test_a_batch_is_padded_to_its_longest_row_where_the_graph_has_no_length(tmp_path, graphs):
    directory = tmp_path / "model"
    shutil.copytree("samples/bert-qa/model", directory)
    if graphs == "one each":
        manifest = json.loads((directory / "neuron.json").read_text())
        for length in manifest["graphs"]:
            shutil.copyfile(directory / "model.onnx", directory / f"model-{length}.onnx")
            manifest["graphs"][length] = f"model-{length}.onnx"
        (directory / "neuron.json").write_text(json.dumps(manifest))
    metrics = CountedMetrics()
    with opened(directory, metrics=metrics) as predictor:
        rows = [row for length in (20, 12) for row in predictor.parse(body_of(length))]
        lengths = [len(row.row) for row in rows]
        assert len({row.bucket for row in rows}) == 1
        found = predictor.predict(rows)
        computed = 2 * (max(lengths) if graphs == "one" else rows[0].bucket)
        assert metrics.counts == {
            "slipway_tokens": sum(lengths),
            "slipway_padding_tokens": computed - sum(lengths),
        }
        # The answers are those of each alone, whatever they are padded to.
        for row, together in zip(rows, found, strict=True):
            [alone] = predictor.predict([row])
            one, other = together.value.spans[0], alone.value.spans[0]
            assert (one.first_token, one.last_token) == (other.first_token, other.last_token)
            assert one.score == pytest.approx(other.score, rel=1e-4)
