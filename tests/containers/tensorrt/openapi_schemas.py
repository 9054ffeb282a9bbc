"""Schemas of an OpenAPI document, each with the schemas that it refers to."""

from jsonschema import Draft202012Validator


def schema_of(document, schema):
    """Returns the validator of a schema, or of the document's schema of that name."""
    found = {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else schema
    return Draft202012Validator({**found, "components": document["components"]})
