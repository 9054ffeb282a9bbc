"""The committed table of provider schemas, and the handlers, against those that cfn-lint ships."""

import json

import pytest

from slipway.embedded_aws.cloudformation.resources.catalog import own_handlers
from slipway.facts.resource_types import provider_schemas
from tools.refresh_facts import resource_types
from tools.refresh_facts.tables import render

HANDLERS = {handler.type_name: handler for handler in own_handlers()}


def schema(type_name):
    # Its import takes more than a second, which each worker's collection would pay.
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

    return PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", type_name)


def top_level(pointers):
    return {pointer.split("/")[2] for pointer in pointers or [] if pointer.count("/") == 2}


@pytest.mark.parametrize("type_name", sorted(HANDLERS))
def test_table_is_the_providers(type_name):
    provided, table = schema(type_name).schema, provider_schemas()[type_name]
    assert table["required"] == sorted(provided.get("required") or [])
    assert table["create_only"] == sorted(top_level(provided.get("createOnlyProperties")))


@pytest.mark.parametrize("type_name", sorted(HANDLERS))
def test_handlers_know_only_real_properties_and_attributes(type_name):
    provided, handler = schema(type_name), HANDLERS[type_name]
    read_only = top_level(provided.schema.get("readOnlyProperties"))
    assert handler.properties <= set(provided.schema["properties"]) - read_only
    assert handler.attributes <= set(provided.get_atts)
    if handler.name_property is not None:
        assert handler.name_property in handler.properties


def test_the_table_is_what_its_script_writes():
    table = resource_types.TABLE.read_text("utf-8")
    dated = {"as_of": json.loads(table)["as_of"], **resource_types.make()}
    assert render(dated, levels=3) == table, "run python -m tools.refresh_facts.resource_types"


def test_every_type_has_one_handler():
    assert len(own_handlers()) == len(HANDLERS)
    assert set(provider_schemas()) == set(HANDLERS)
