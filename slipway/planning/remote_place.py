"""Names of remote publishing that the command, the build and the foundation share."""

REMOTE_PREFIX = "remote/"
"""Key prefix of everything of remote publishing; the bucket deletes it after a while."""

SOURCES_PREFIX = f"{REMOTE_PREFIX}sources/"
RESULTS_PREFIX = f"{REMOTE_PREFIX}results/"

BUILD_MODULE = "slipway.cli.remote_build"
CA_BUNDLE_FILE = "mirrors.pem"
"""In the source; there only if the environment names certificates for mirrors."""

# Variables of a build.
SOURCE_DIGEST = "SLIPWAY_SOURCE"
MODEL = "SLIPWAY_MODEL"
ENVIRONMENT = "SLIPWAY_ENVIRONMENT"
INPUTS = "SLIPWAY_INPUTS"
"""Digest of everything that decides what a build does."""
