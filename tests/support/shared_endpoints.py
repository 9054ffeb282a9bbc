"""Projects whose models share an endpoint."""

from collections.abc import Mapping

from tests.support.projects import config_text

_MODE = """\
  mode: scale_to_zero
  scale_to_zero:
    accelerators_per_copy: 1
    max_copies: 6
    target_concurrent_requests_per_copy: 5
"""


def host_text(name: str = "search", *edits: tuple[str, str]) -> str:
    """Returns the YAML of a model whose endpoint hosts copies, after some edits."""
    return config_text(
        name,
        ("[ml.g4dn.xlarge]\n  instance_count: 2\n", "[ml.g4dn.12xlarge]\n" + _MODE),
        *edits,
    )


def guest_text(name: str = "titles", *edits: tuple[str, str], host: str = "search") -> str:
    """Returns the YAML of a model whose copies run on the endpoint of another model."""
    names_host = ("  scale_to_zero:\n", f"  scale_to_zero:\n    endpoint_of: {host}\n")
    return host_text(name, names_host, *edits)


def models() -> Mapping[str, str]:
    """Returns a host with two guests, and a model beside them, by name."""
    return {
        "alone": config_text("alone"),
        "search": host_text(),
        "tags": guest_text("tags"),
        "titles": guest_text(),
    }
