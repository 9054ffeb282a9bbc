"""Builds one image by its Dockerfile, on its base or on a stand-in."""

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway.embedded_aws.containers.engine import Engine, EngineError
from slipway.embedded_aws.containers.images import SOURCES_LABEL
from slipway.image_sources import copy_image_files, image_digest
from tools.images import stand_in
from tools.images.catalogue import ROOT, Image
from tools.install import pip_settings, uv_variables


@dataclass(frozen=True)
class Built:
    """An image that was built: in how long without its base, and how large with it.

    The name of a stand-in for the base begins with `slipway-stand-in/`.
    """

    image: Image
    sources: str
    base: str
    seconds: float
    size_bytes: int
    base_size_bytes: int


def build(
    engine: Engine,
    image: Image,
    tell: Callable[[str], None],
    environ: Mapping[str, str] = os.environ,
    *,
    may_pull: bool = True,
) -> Built:
    """Builds an image on its base if the engine has it or may pull it, else on a stand-in.

    The mirrors and certificates of the user's variables are used. A base has several GB. Raises
    `UnavailableError` if neither is available here, and `EngineError` if the build failed.
    """
    environ = {**environ, **uv_variables(pip_settings(), environ)}
    base = image.base
    if not engine.has_image(base) and not (may_pull and _pulls(engine, base, tell)):
        base = stand_in.make(engine, image, _secrets(environ), tell, environ)
    sources = image_digest(ROOT, image.family)
    label = f"{SOURCES_LABEL}={sources}"
    options = ["--target", image.target, "--tag", image.tag, "--label", label]
    if index := environ.get("UV_DEFAULT_INDEX"):
        options += ["--build-arg", f"UV_DEFAULT_INDEX={index}"]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        # As the image stack sends them to CodeBuild.
        folder = Path(temporary)
        copy_image_files(ROOT, image.family, folder)
        file = folder / image.dockerfile.relative_to(ROOT)
        options += ["--build-arg", f"BASE_IMAGE={base}", "--file", str(file)]
        engine.build(folder, *options, *_secrets(environ), tell=tell)
    return Built(
        image,
        sources,
        base,
        time.monotonic() - started,
        _size_bytes(engine, image.tag),
        _size_bytes(engine, base),
    )


def _pulls(engine: Engine, base: str, tell: Callable[[str], None]) -> bool:
    tell(f"pulling {base}")
    try:
        engine.answer("pull", "--quiet", base)
    except EngineError as error:
        tell(f"{error}\nA stand-in takes its place.")
        return False
    return True


def _secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the option with the certificate authorities that a mirror or a proxy needs."""
    authorities = environ.get("SSL_CERT_FILE")
    return ("--secret", f"id=ca_bundle,src={authorities}") if authorities else ()


def _size_bytes(engine: Engine, name: str) -> int:
    return int(engine.answer("image", "inspect", "--format", "{{.Size}}", name))
