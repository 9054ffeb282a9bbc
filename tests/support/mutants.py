"""Configs that are right, and what is done to them: the draw of every test of mutants.

A mutant is a shipped config or a golden case after one to three changes. Some changes are blind;
others take a field of the schema and a value at the limit of what it allows, which is where a
config that is accepted and a template that is refused are to be found.
"""

import copy
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from slipway.config.environments import Environment
from slipway.config.load import load_environment
from slipway.config.schema import ModelConfig, is_model_name
from slipway.config.sections.base import INSTANCE_TYPE_REFERENCE, LOG_RETENTION_DAYS
from slipway.errors import FieldPath
from slipway.facts.instances import instance_types
from slipway.planning.plan import DeploymentPlan
from tests.support import golden_cases as cases

ROOT = Path(__file__).parents[2]
CI = load_environment("ci", ROOT)
ENVIRONMENTS = {**cases.ENVIRONMENTS, CI.name: CI}
FILE = "mutant"

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Base:
    """A config that is right in an environment."""

    name: str
    raw: bytes
    environment: Environment

    @property
    def content(self) -> dict[str, Any]:
        return copy.deepcopy(_read(self.raw))


@dataclass(frozen=True)
class Mutant:
    base: Base
    content: Any

    @property
    def raw(self) -> bytes:
        return yaml.dump(self.content, Dumper=yaml.CSafeDumper, allow_unicode=True).encode()

    @property
    def stem(self) -> str:
        """Name of its file: a name at the limit of what is allowed is to be met as well."""
        name = self.content.get("name") if isinstance(self.content, dict) else None
        return name if isinstance(name, str) and is_model_name(name) else FILE


@functools.cache
def _read(raw: bytes) -> dict[str, Any]:
    content: dict[str, Any] = yaml.load(raw, yaml.CSafeLoader)
    return content


def shipped_configs() -> list[Base]:
    """The project's own configs, in the environment in which CI synthesises them."""
    return [
        Base(path.stem, path.read_bytes(), CI)
        for path in sorted((ROOT / "model_configs").glob("*.yaml"))
    ]


def golden_cases() -> list[Base]:
    """The golden cases that have a plan, each in its own environment."""
    return [
        Base(name, (cases.CASES / f"{name}.yaml").read_bytes(), cases.environment_of(name))
        for name in cases.GOOD
        # An adapter's file is no config without its base's.
        if "base" not in cases.options_of(name)
    ]


def plan_of(raw: bytes, stem: str, root: Path, environment: Environment) -> DeploymentPlan:
    """Loads and plans a config as a project would that has the file."""
    loaded = cases.load(raw, stem, root, environment, ENVIRONMENTS)
    return cases.plan_loaded(loaded, environment, allow_unpublished=True)


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(10**6, 10**30),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=12),
    st.sampled_from(["ml.g5.xlarge", "ml.inf1.xlarge", "600", "s3://b/", "lmi", "async", "canary"]),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=5)), max_size=7),
    st.dictionaries(st.text(max_size=6), st.integers(), max_size=3),
)
CHANGES = ("delete", "replace", "add", "to_a_limit")


@st.composite
def mutants(draw: st.DrawFn, bases: Sequence[Base], changes: Sequence[str] = CHANGES) -> Mutant:
    """Draws a base and changes it; a kind of change that is named twice is made more often."""
    base = draw(st.sampled_from(bases))
    content = base.content
    content["name"] = FILE
    for _ in range(draw(st.integers(1, 3))):
        _change(draw, content, draw(st.sampled_from(changes)))
        if not places(content):
            break
    return Mutant(base, content)


def _change(draw: st.DrawFn, content: dict[str, Any], change: str) -> None:
    if change == "to_a_limit":
        _to_a_limit(draw, content)
        return
    *parents, last = draw(st.sampled_from(places(content)))
    section = _at(content, parents)
    if change == "delete":
        del section[last]
    elif change == "replace":
        section[last] = draw(ANYTHING)
    elif isinstance(section, dict):
        section[draw(st.text(min_size=1, max_size=8))] = draw(ANYTHING)


def places(content: Any, path: FieldPath = ()) -> list[FieldPath]:
    items = content.items() if isinstance(content, dict) else enumerate(content)
    found = [path] if path else []
    for key, value in items:
        nested = isinstance(value, (dict, list))
        found += places(value, (*path, key)) if nested else [(*path, key)]
    return found


def every_field(bases: Sequence[Base]) -> list[tuple[Base, FieldPath]]:
    """Returns each field that a config may have, in a base: one that sets it, where there is one.

    A field of `serving` is there once for each container that has it, and one of a list once.
    """
    set_in: dict[FieldPath, tuple[Base, FieldPath]] = {}
    allowed_in: dict[FieldPath, tuple[Base, FieldPath]] = {}
    for base in bases:
        content = base.content
        container: str = content["serving"]["container"]

        def kind_of(path: FieldPath, container: str = container) -> FieldPath:
            names = tuple("*" if isinstance(part, int) else part for part in path)
            return (container, *names) if path[0] == "serving" else names

        paths = places(content)
        for path in paths:
            set_in.setdefault(kind_of(path), (base, path))
        for path in ((), *paths):
            for name in (_schema_at(content, path) or {}).get("properties", ()):
                allowed_in.setdefault(kind_of((*path, name)), (base, (*path, name)))
    return list({**allowed_in, **set_in}.values())


def with_value(base: Base, path: FieldPath, value: Any) -> Mutant:
    content = base.content
    content["name"] = FILE
    *parents, last = path
    _at(content, parents)[last] = value
    return Mutant(base, content)


def _at(content: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        content = content[part]
    return content


def _to_a_limit(draw: st.DrawFn, content: dict[str, Any]) -> None:
    """Gives a field of the schema, set before or not, a value that the schema allows."""
    sections = [()] + [path for path in places(content) if isinstance(_at(content, path), dict)]
    known = [(path, schema) for path in sections if (schema := _schema_at(content, path))]
    path, schema = draw(st.sampled_from(known))
    name = draw(st.sampled_from(sorted(schema["properties"])))
    _at(content, path)[name] = draw(allowed_values(schema["properties"][name]))


@functools.cache
def _root_schema() -> dict[str, Any]:
    return copy.deepcopy(ModelConfig.model_json_schema())


def _schema_at(content: Any, path: FieldPath) -> Schema | None:
    """Follows the schema to a mapping with named fields; None where there is none."""
    schema = _chosen(_root_schema(), content)
    for part in path:
        content = content[part]
        if schema is not None and isinstance(part, int):
            schema = schema.get("items")
        elif schema is not None:
            schema = schema.get("properties", {}).get(part)
        schema = _chosen(schema, content) if schema else None
    return schema if schema and "properties" in schema else None


def _chosen(schema: Schema, content: Any) -> Schema | None:
    """Follows references, and chooses the member of a union that the content is of."""
    if "$ref" in schema:
        return _chosen(_referenced(schema), content)
    if "discriminator" in schema:
        tag = schema["discriminator"]
        value = content.get(tag["propertyName"]) if isinstance(content, dict) else None
        reference = tag["mapping"].get(value) if isinstance(value, str) else None
        return _chosen({"$ref": reference}, content) if reference else None
    for member in schema.get("anyOf", ()):
        if member.get("type") != "null":
            return _chosen(member, content)
    return schema


def _referenced(schema: Schema) -> Schema:
    found: Schema = _root_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    return found


def allowed_values(schema: Schema) -> st.SearchStrategy[Any]:
    """Draws what a schema allows, its limits more often than anything else."""
    if "$ref" in schema:
        return allowed_values(_referenced(schema))
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return st.one_of([allowed_values(member) for member in schema[union]])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    return _BY_TYPE[schema.get("type", "object")](schema)


def _integers(schema: Schema) -> st.SearchStrategy[Any]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    high = schema.get("maximum", 10**12)
    # The schema does not list CloudWatch's retention periods, between which nothing is allowed.
    return st.sampled_from([low, high, *LOG_RETENTION_DAYS[-2:]]) | st.integers(low, high)


def _numbers(schema: Schema) -> st.SearchStrategy[Any]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum")
    return st.floats(
        low, high, exclude_min="exclusiveMinimum" in schema, allow_nan=False, allow_infinity=False
    )


def _texts(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.get("format") == INSTANCE_TYPE_REFERENCE:
        return st.sampled_from(sorted(instance_types()))
    least, most = schema.get("minLength", 0), schema.get("maxLength", 2000)
    if "pattern" not in schema:
        longest = st.characters(codec="utf-8").map(lambda letter: letter * most)
        return st.text(min_size=least, max_size=min(most, 40)) | longest
    matching = st.from_regex(schema["pattern"], fullmatch=True)
    # Most of the patterns end in something that may be repeated.
    longest = matching.map(lambda text: text + text[-1:] * (most - len(text)))
    return matching.filter(lambda text: len(text) <= most) | longest


def _lists(schema: Schema) -> st.SearchStrategy[Any]:
    most = min(schema.get("maxItems", 5), 10)
    return st.lists(
        allowed_values(schema["items"]), min_size=schema.get("minItems", 0), max_size=most
    )


def _mappings(schema: Schema) -> st.SearchStrategy[Any]:
    if "properties" in schema:
        fields = {name: allowed_values(each) for name, each in schema["properties"].items()}
        required = {name: fields.pop(name) for name in schema.get("required", ())}
        return st.fixed_dictionaries(required, optional=fields)
    names, member = dict(schema.get("propertyNames", {})), schema.get("additionalProperties")
    for pattern, matching in schema.get("patternProperties", {}).items():
        names["pattern"], member = pattern, matching
    values = allowed_values(member) if isinstance(member, dict) else ANYTHING
    most = schema.get("maxProperties", 5)
    full = values.map(lambda value: {f"K{number:02}": value for number in range(most)})
    return st.dictionaries(_texts(names), values, max_size=min(most, 3)) | full


_BY_TYPE = {
    "null": lambda _: st.none(),
    "boolean": lambda _: st.booleans(),
    "integer": _integers,
    "number": _numbers,
    "string": _texts,
    "array": _lists,
    "object": _mappings,
}
