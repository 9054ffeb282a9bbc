import json

import numpy as np
import pytest

from containers.encoders.entities import entities
from containers.encoders.outputs import best_labels, normalized, pooled, scores
from containers.encoders.tasks import json_array
from tests.containers.neuron.vocabularies import bert

NAMES = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def test_scores_add_up_or_stand_alone_and_are_numbers():
    logits = np.array([1.0, 2.0, -1000.0], np.float32)
    assert scores(logits, "softmax") == pytest.approx([0.26894, 0.73106, 0.0], abs=1e-5)
    assert scores(logits, "sigmoid") == pytest.approx([0.73106, 0.88080, 0.0], abs=1e-5)
    assert list(scores(logits, "none")) == [1.0, 2.0, -1000.0]
    with pytest.raises(FloatingPointError, match="not a finite number"):
        scores(np.array([1.0, np.inf]), "softmax")


def test_labels_come_the_best_first():
    found = best_labels(np.array([0.2, 0.5, 0.3]), ("a", "b", "c"), top_k=2)
    assert found == [{"label": "b", "score": 0.5}, {"label": "c", "score": 0.3}]


def token_scores(*labels):
    """For each token the label that it gets, and with which score; the rest goes to the others."""
    rows = np.zeros((len(labels), len(NAMES)))
    for row, (label, score) in zip(rows, labels, strict=True):
        row[:] = (1 - score) / (len(NAMES) - 1)
        row[label] = score
    return rows


def found(text, strategy, *labels, ignore=("O",)):
    tokenized = bert(["ada", "love", "##lace", "in", "paris", "york", "new"]).tokenize(text)
    return entities(
        tokenized, token_scores(*labels), NAMES, strategy=strategy, ignore_labels=ignore
    )


def test_none_shows_every_token():
    assert found("Ada Lovelace in", "none", (1, 0.9), (2, 0.8), (2, 0.6), (0, 0.9)) == [
        {"entity": "B-PER", "score": 0.9, "index": 1, "word": "Ada", "start": 0, "end": 3},
        {"entity": "I-PER", "score": 0.8, "index": 2, "word": "Love", "start": 4, "end": 8},
        {"entity": "I-PER", "score": 0.6, "index": 3, "word": "lace", "start": 8, "end": 12},
    ]


def test_simple_joins_neighbours_and_begins_anew_at_b():
    groups = found("Ada Ada in Paris", "simple", (1, 0.9), (1, 0.7), (0, 0.9), (3, 0.6))
    assert [(group["entity_group"], group["word"]) for group in groups] == [
        ("PER", "Ada"),
        ("PER", "Ada"),
        ("LOC", "Paris"),
    ]
    [group] = found("Ada Lovelace", "simple", (1, 0.9), (2, 0.8), (2, 0.6))
    assert (group["word"], group["start"], group["end"]) == ("Ada Lovelace", 0, 12)
    assert group["score"] == pytest.approx((0.9 + 0.8 + 0.6) / 3)


def test_what_is_ignored_still_parts_entities():
    groups = found("Paris in York", "simple", (4, 0.9), (0, 0.9), (4, 0.8))
    assert [group["word"] for group in groups] == ["Paris", "York"]
    groups = found("Paris in York", "simple", (4, 0.9), (0, 0.9), (4, 0.8), ignore=("LOC",))
    assert [(group["entity_group"], group["word"]) for group in groups] == [("O", "in")]


@pytest.mark.parametrize(
    ("strategy", "label", "score"),
    [("first", "PER", 0.6), ("average", "LOC", (0.1 + 0.9) / 2), ("max", "LOC", 0.9)],
)
def test_words_have_one_label_by_each_strategy_but_simple(strategy, label, score):
    [group] = found("Lovelace", strategy, (2, 0.6), (4, 0.9))
    assert (group["entity_group"], group["word"]) == (label, "Lovelace")
    assert group["score"] == pytest.approx(score)
    groups = found("Lovelace", "simple", (2, 0.6), (4, 0.9))
    assert [group["word"] for group in groups] == ["Love", "lace"]


def test_pooling_leaves_padding_out_and_a_vector_of_length_zero_stays_one():
    vectors = np.array([[[1.0, 3.0], [3.0, 5.0], [np.nan, np.nan]]], np.float32)
    mask = np.array([[1, 1, 0]])
    assert pooled(vectors, mask, "mean").tolist() == [[2.0, 4.0]]
    assert pooled(vectors, mask, "cls").tolist() == [[1.0, 3.0]]
    assert normalized(np.array([3.0, 4.0])) == pytest.approx([0.6, 0.8])
    assert normalized(np.zeros(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 250])
def test_a_long_array_is_written_in_pieces_of_the_same_json(length):
    values = [{"word": "Zoë", "start": number} for number in range(length)]
    assert json_array(values) == json.dumps(values, ensure_ascii=False)


def test_no_piece_is_long(monkeypatch):
    lengths = []
    dumps = json.dumps

    def counted(values, *, ensure_ascii):
        lengths.append(len(values))
        return dumps(values, ensure_ascii=ensure_ascii)

    monkeypatch.setattr(json, "dumps", counted)
    json_array(list(range(250)))
    assert lengths == [100, 100, 50]
