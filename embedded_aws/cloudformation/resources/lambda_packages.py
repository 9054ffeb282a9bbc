"""Imports the module of a Lambda function from its package, without files and apart from others.

Lambda has the package as the root of its imports. Here several functions share one process, and two
versions of a function may have modules of one name. Each package is therefore imported below a name
of its own, which no other import can reach. Its modules may import one another by relative names.
"""

import importlib
import io
import itertools
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

_numbers = itertools.count()


class PackageError(Exception):
    """The package has no such module, or the module cannot be imported."""


def load_module(package: bytes, name: str, write: Callable[[str], None]) -> ModuleType:
    """Returns a module of a package.

    Args:
        package: a ZIP file.
        name: of the module, with its folders: `handler` or `functions.image_build`.
        write: takes each line that a module of the package prints.

    Raises:
        PackageError: it is no ZIP file, it has no such module, or the module does not compile.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(package)) as archive:
            sources = {path: archive.read(path) for path in archive.namelist()}
    except zipfile.BadZipFile as error:
        raise PackageError(error) from None
    finder = _Finder(f"_function_{next(_numbers)}", sources, write)
    sys.meta_path.insert(0, finder)
    try:
        # The user's own code, which an account would run as well.
        return importlib.import_module(f"{finder.root}.{name.replace('/', '.')}")
    except (ImportError, SyntaxError) as error:
        raise PackageError(str(error).replace(f"{finder.root}.", "")) from None
    finally:
        sys.meta_path.remove(finder)
        # The functions keep their modules alive; nothing else may find them.
        for loaded in [each for each in sys.modules if each.partition(".")[0] == finder.root]:
            del sys.modules[loaded]


class _Finder(MetaPathFinder, InspectLoader):
    """Finds the modules of one package below its own name."""

    def __init__(
        self, root: str, sources: Mapping[str, bytes], write: Callable[[str], None]
    ) -> None:
        self.root = root
        self._sources = sources
        self._write = write

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname.partition(".")[0] != self.root or self._source(fullname) is None:
            return None
        return spec_from_loader(fullname, self, is_package=self.is_package(fullname))

    def is_package(self, fullname: str) -> bool:
        return fullname == self.root or f"{self._path(fullname)}/__init__.py" in self._sources

    def get_source(self, fullname: str) -> str | None:
        source = self._source(fullname)
        return None if source is None else source.decode()

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["print"] = lambda *words, **_: self._write(" ".join(map(str, words)))
        super().exec_module(module)

    def _source(self, fullname: str) -> bytes | None:
        if fullname == self.root:
            return b""
        path = self._path(fullname)
        return self._sources.get(f"{path}/__init__.py", self._sources.get(f"{path}.py"))

    def _path(self, fullname: str) -> str:
        return fullname.removeprefix(f"{self.root}.").replace(".", "/")
