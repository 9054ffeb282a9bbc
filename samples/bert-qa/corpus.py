"""The text that the sample learns from: notes on SageMaker's instance types and on endpoints.

The facts about instance types are those of slipway/facts/instances.json; names of endpoints are put
together from a list of words. Notes are made from templates, by a generator with a fixed seed: no
network, no clock. One in six types, and one in six names of endpoints, is held out: no note that is
trained on holds one of them.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HELD_OUT_ONE_IN = 6

_FACTS = Path(__file__).resolve().parents[2] / "slipway" / "facts" / "instances.json"
_WORDS = (
    "search", "support", "legal", "claims", "catalog", "review", "invoice", "travel", "billing",
    "news", "chat", "ticket", "medical", "retail", "fraud", "voice", "music", "energy",
)  # fmt: skip
_KINDS = ("qa", "ner", "rank", "embed", "intent", "spelling", "summary", "autocomplete")
_REGIONS = ("eu-west-1", "eu-central-1", "us-east-1", "us-west-2", "ap-south-1", "sa-east-1")
_TEAMS = ("platform", "data science", "mobile", "research", "operations", "web", "security")


@dataclass(frozen=True)
class Example:
    """A question about a text.

    Attributes:
        question: names one subject and one of its properties.
        context: some notes.
        start: first character of the answer in `context`, or -1 where it has none.
        answer: empty where there is none.
    """

    question: str
    context: str
    start: int
    answer: str


@dataclass(frozen=True)
class _Property:
    """One property of a subject: how it is written, and how it is asked for."""

    name: str
    value: str
    sentences: tuple[str, ...]
    questions: tuple[str, ...]


@dataclass(frozen=True)
class _Subject:
    name: str
    properties: tuple[_Property, ...]


def examples(*, held_out: bool, seed: int) -> Iterator[Example]:
    """Yields examples without end, the same for the same seed.

    Args:
        held_out: whether they are about the subjects that are held out, or about the others.
        seed: of the generator.
    """
    chance = random.Random(seed)  # noqa: S311  (no secret)
    types = [subject for subject in _instance_types() if _is_held_out(subject.name) == held_out]
    names = [
        name
        for name in (f"{word}-{kind}" for word in _WORDS for kind in _KINDS)
        if _is_held_out(name) == held_out
    ]
    type_names = [subject.name for subject in types]
    while True:
        subjects = [
            chance.choice(types)
            if chance.random() < 0.5
            else _endpoint(chance.choice(names), chance, type_names)
            for _ in range(chance.choice((1, 2, 2, 3)))
        ]
        if len({subject.name for subject in subjects}) == len(subjects):
            yield _example(subjects, chance)


def first_examples(count: int, *, held_out: bool, seed: int) -> list[Example]:
    """Returns the first of them."""
    generator = examples(held_out=held_out, seed=seed)
    return [next(generator) for _ in range(count)]


def _example(subjects: Sequence[_Subject], chance: random.Random) -> Example:
    """Writes some properties of each subject, and asks for one of a subject, mostly written."""
    asked = chance.choice(subjects)
    wanted = chance.choice(asked.properties)
    is_there = chance.random() < 0.88
    parts: list[str] = []
    start = -1
    position = 0
    for subject in chance.sample(subjects, len(subjects)):
        shown = [
            each
            for each in subject.properties
            if (each is wanted and is_there) or (each is not wanted and chance.random() < 0.55)
        ]
        for each in chance.sample(shown, len(shown)):
            before, _, after = chance.choice(each.sentences).partition("{value}")
            before = before.format(name=subject.name)
            if each is wanted:
                start = position + len(before)
            parts.append(before + each.value + after.format(name=subject.name))
            position += len(parts[-1]) + 1
    if not parts:
        parts.append("There are no notes yet.")
    return Example(
        question=chance.choice(wanted.questions).format(name=asked.name),
        context=" ".join(parts),
        start=start,
        answer=wanted.value if start >= 0 else "",
    )


def _instance_types() -> Iterator[_Subject]:
    for name, facts in json.loads(_FACTS.read_text("utf-8"))["instances"].items():
        properties = []
        if facts["vcpus"] is not None:
            properties.append(
                _Property(
                    "vcpus",
                    f"{facts['vcpus']}",
                    (
                        "{name} has {value} vCPUs.",
                        "There are {value} vCPUs in {name}.",
                        "With {name} you get {value} vCPUs.",
                    ),
                    (
                        "How many vCPUs does {name} have?",
                        "How many vCPUs are in {name}?",
                        "What is the number of vCPUs of {name}?",
                    ),
                )
            )
        if facts["memory_gib"] is not None:
            properties.append(
                _Property(
                    "memory",
                    f"{facts['memory_gib']:g} GiB",
                    (
                        "{name} comes with {value} of memory.",
                        "The memory of {name} is {value}.",
                        "{name} has {value} of memory.",
                    ),
                    (
                        "How much memory does {name} have?",
                        "What is the memory of {name}?",
                        "How large is the memory of {name}?",
                    ),
                )
            )
        if facts["accelerator"] is not None:
            properties.append(
                _Property(
                    "accelerator",
                    f"{facts['accelerator']['product']}",
                    (
                        "{name} is built around the {value}.",
                        "The accelerator in {name} is the {value}.",
                        "{name} carries the {value}.",
                    ),
                    (
                        "Which accelerator is in {name}?",
                        "What is the accelerator of {name}?",
                        "Which accelerator does {name} have?",
                    ),
                )
            )
        yield _Subject(name, tuple(properties))


def _endpoint(name: str, chance: random.Random, types: Sequence[str]) -> _Subject:
    return _Subject(
        name,
        (
            _Property(
                "type",
                chance.choice(types),
                (
                    "The endpoint {name} runs on {value}.",
                    "{name} is deployed on {value}.",
                    "We serve {name} from {value}.",
                ),
                (
                    "Which instance type does {name} run on?",
                    "What does {name} run on?",
                    "On which instance type is {name} deployed?",
                ),
            ),
            _Property(
                "region",
                chance.choice(_REGIONS),
                (
                    "{name} is in {value}.",
                    "The region of {name} is {value}.",
                    "{name} lives in {value}.",
                ),
                (
                    "Which region is {name} in?",
                    "Where is {name}?",
                    "In which region does {name} live?",
                ),
            ),
            _Property(
                "team",
                chance.choice(_TEAMS),
                (
                    "{name} belongs to the {value} team.",
                    "The {value} team owns {name}.",
                    "{name} is run by the {value} team.",
                ),
                (
                    "Which team owns {name}?",
                    "Who owns {name}?",
                    "Which team runs {name}?",
                ),
            ),
            _Property(
                "count",
                str(chance.randint(1, 40)),
                (
                    "{name} has {value} instances.",
                    "There are {value} instances of {name}.",
                    "{name} is scaled to {value} instances.",
                ),
                (
                    "How many instances does {name} have?",
                    "How many instances are there of {name}?",
                    "To how many instances is {name} scaled?",
                ),
            ),
        ),
    )


def _is_held_out(name: str) -> bool:
    """Whether a subject is measured on and not trained on; by its name, so that it stays so."""
    return hashlib.sha256(name.encode()).digest()[0] % HELD_OUT_ONE_IN == 0
