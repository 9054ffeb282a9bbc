"""Additions of the documentation site to MkDocs: `make docs`."""
