"""Provides what a push of an image needs: buildx, and a registry. `make buildx` installs both.

buildx is a plugin of Docker's client, which the image stack's builds use. Debian's docker.io has
none.
"""

from pathlib import Path

from tools.go_programs import GoProgram

BUILDX = GoProgram(
    Path(__file__).parent, "github.com/docker/buildx", "cmd/buildx", "docker-buildx", minutes=4
)
"""The plugin."""

REGISTRY = "docker-registry"
"""Debian's package and program of a registry."""
