"""The committed spelling model corrects typos, and training never has the held-out ones."""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

SAMPLE = Path(__file__).parents[2] / "samples" / "t5-spelling"
MODEL = SAMPLE / "model"

with pytest.MonkeyPatch.context() as patch:
    # Where the modules beside train.py find each other.
    patch.syspath_prepend(SAMPLE)
    import measuring
    import queries
    import typos

from containers.tensorrt.tokenization import PromptTokenizer  # noqa: E402  (after the path)

MOST_TOKENS = 64
SENTENCES = (
    "Describes the security group of an Amazon EC2 instance.",
    "The maxResults parameter isn't used by 42 security groups.",
    "Creates a security group rule for each instance",
)
# What a user types, and what they mean.
TYPED = {
    "bukcet": "bucket",
    "instnace": "instance",
    "scurity group": "security group",
    "amazon ec2 instnace": "amazon ec2 instance",
    "Lambda funtion": "lambda function",
    "availabilty zone": "availability zone",
}
WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=4, max_size=12)


@pytest.fixture(scope="module")
def corrector() -> measuring.Corrector:
    return measuring.Corrector(MODEL, most_tokens=MOST_TOKENS)


@pytest.fixture(scope="module")
def vocabulary() -> queries.Vocabulary:
    return queries.count_words(SENTENCES)


class TestModel:
    """The files that a deployment publishes."""

    def test_typos_are_corrected(self, corrector: measuring.Corrector) -> None:
        assert dict(zip(TYPED, corrector.correct(list(TYPED)), strict=True)) == TYPED

    def test_correct_queries_are_kept(self, corrector: measuring.Corrector) -> None:
        meant = list(TYPED.values())
        assert corrector.correct(meant) == meant

    def test_a_text_is_answered_in_a_batch_as_alone(self, corrector: measuring.Corrector) -> None:
        # The answer to a text that is no query is of no use, but it is the same one.
        texts = [*TYPED, "", "日本語", "x" * 40, "NULL \x00 \n"]
        assert corrector.correct(texts) == [corrector.correct([text])[0] for text in texts]

    def test_weights_are_stored_once(self) -> None:
        sizes = {path.name: path.stat().st_size for path in MODEL.iterdir()}
        assert sum(sizes.values()) <= 5_000_000
        assert sizes["encoder.onnx"] + sizes["decoder.onnx"] < 50_000

    @given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
    def test_a_token_is_a_byte(self, text: str) -> None:
        tokenizer = PromptTokenizer.read(MODEL / "tokenizer.json")
        (tokens,) = tokenizer.encode([text], max_tokens=MOST_TOKENS * 2)
        assert len(tokens) == len(text.encode()) + 1
        end = json.loads((MODEL / "generation_config.json").read_text())["eos_token_id"]
        assert tokens[-1] == end
        assert end not in tokens[:-1]
        assert tokenizer.decode(list(tokens)) == text

    def test_the_page_has_the_measured_numbers(self) -> None:
        page = (SAMPLE / "README.md").read_text()
        metrics = json.loads((SAMPLE / "metrics.json").read_text())
        for name, number in metrics["held_out"].items():
            shown = f"{number:,}" if isinstance(number, int) else f"{number} %"
            assert shown in page, name
        for path in MODEL.glob("*.[os]*"):
            assert f"{path.stat().st_size:,}" in page, path.name


class TestTypos:
    """How words are misspelt."""

    @pytest.mark.parametrize(
        ("kind", "word", "made"),
        [
            ("omission", "keep", ["eep", "kep", "kee"]),
            ("swap", "keep", ["ekep", "kepe"]),
            ("doubling", "keep", ["kkeep", "keeep", "keepp"]),
            ("vowel", "if", ["af", "ef", "of", "uf"]),
            ("neighbour key", "pl", ["ol", "0l", "ll", "pk", "po", "pp"]),
            ("extra key", "p", ["op", "po", "0p", "p0", "lp", "pl"]),
        ],
    )
    def test_of_each_kind(self, kind: str, word: str, made: list[str]) -> None:
        assert typos.typos(word, kind) == made

    @given(word=WORDS)
    def test_a_typo_is_one_or_two_letters_away(self, word: str) -> None:
        for kind in typos.KINDS:
            for typo in typos.typos(word, kind):
                assert typo != word
                assert abs(len(typo) - len(word)) <= 1

    def test_neighbours_are_mutual(self) -> None:
        for key, around in typos.NEIGHBOURS.items():
            assert 2 <= len(around) <= 6
            assert all(key in typos.NEIGHBOURS[other] for other in around)

    def test_one_pair_in_ten_is_held_out(self) -> None:
        pairs = [
            typos.is_held_out(word, typo)
            for word in ("instance", "configuration", "describes")
            for kind in typos.KINDS
            for typo in typos.typos(word, kind)
        ]
        assert 0.07 < sum(pairs) / len(pairs) < 0.13


class TestQueries:
    """What the model is trained and measured with."""

    def test_words_of_a_sentence(self) -> None:
        assert queries.words(SENTENCES[0]) == [
            "describes", "", "security", "group", "", "", "amazon", "ec2", "instance",
        ]  # fmt: skip
        # An identifier, a word with an apostrophe, a stop word and a number.
        assert queries.words(SENTENCES[1]) == [
            "", "", "parameter", "", "used", "", "", "security", "groups",
        ]  # fmt: skip

    def test_the_dictionary_has_the_most_frequent_words(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queries, "DICTIONARY_WORDS", 3)
        monkeypatch.setattr(queries, "UNKNOWN_WORDS", 2)
        found = queries.count_words(SENTENCES)
        assert found.dictionary == {"security": 3, "group": 2, "instance": 2}
        assert found.unknown == ("amazon", "creates")

    def test_queries_are_runs_of_words(self, vocabulary: queries.Vocabulary) -> None:
        assert queries.queries(SENTENCES, vocabulary, length=3) == [
            ("amazon", "ec2", "instance"),
            ("security", "group", "rule"),
        ]

    @pytest.mark.parametrize("held_out", [False, True])
    def test_typos_are_all_of_training_or_all_held_out(
        self, vocabulary: queries.Vocabulary, held_out: bool
    ) -> None:
        chance = random.Random(3)  # noqa: S311  (no secret depends on it)
        misspeller = queries.Misspeller(vocabulary, chance, held_out=held_out)
        for word in filter(queries.can_be_misspelt, vocabulary.dictionary):
            for _ in range(20):
                typo = misspeller.typo(word)
                assert typos.is_held_out(word, typo) == held_out
                assert typo not in vocabulary.dictionary

    def test_a_second_typo_does_not_mend_the_first(self, vocabulary: queries.Vocabulary) -> None:
        chance = random.Random(5)  # noqa: S311  (no secret depends on it)
        misspeller = queries.Misspeller(vocabulary, chance, held_out=True)
        # Three letters have few typos, and none of them may be held out.
        for typed in ("ule", "rue", "rul"):
            found = {misspeller.second_typo(typed, "rule") for _ in range(50)}
            assert len(found) > 10
            assert not found & {"rule", typed}

    def test_a_word_without_a_typo_on_its_side_is_an_error(
        self, vocabulary: queries.Vocabulary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queries, "is_held_out", lambda *_pair: False)
        misspeller = queries.Misspeller(vocabulary, random.Random(5), held_out=True)  # noqa: S311
        with pytest.raises(ValueError, match="rule has no typo that is allowed"):
            misspeller.typo("rule")

    def test_training_has_typos_and_correct_queries(self, vocabulary: queries.Vocabulary) -> None:
        pairs = list(islice(queries.training_pairs(SENTENCES, vocabulary, seed=1), 500))
        lengths = set()
        for pair in pairs:
            meant, typed = pair.meant.split(), pair.typed.lower().split()
            lengths.add(len(meant))
            assert set(meant) <= set(vocabulary.dictionary)
            for word, form in zip(meant, typed, strict=True):
                assert word == form or (len(word) >= 4 and not typos.is_held_out(word, form))
        assert lengths == {1, 2, 3}
        kept = sum(pair.typed.lower() == pair.meant for pair in pairs)
        assert 0.05 < kept / len(pairs) < 0.3

    def test_the_same_seed_gives_the_same_pairs(self, vocabulary: queries.Vocabulary) -> None:
        first, again, other = (
            list(islice(queries.training_pairs(SENTENCES, vocabulary, seed=seed), 50))
            for seed in (1, 1, 2)
        )
        assert first == again != other
