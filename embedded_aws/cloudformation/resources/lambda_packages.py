"""Imports the module of a Lambda function from its package, apart from all other modules.

Lambda has the package as the root of its imports. Here several functions share one process, and two
versions of a function may have modules of one name. Each package is therefore imported below a name
of its own, which no other import can reach. Its modules may import one another by relative names.
"""

import importlib
import io
import itertools
import sys
import tempfile
import zipfile
from collections.abc import Callable
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
    root = ModuleType(f"_function_{next(_numbers)}")

    def write_words(*words: object, **_: object) -> None:
        write(" ".join(map(str, words)))

    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(io.BytesIO(package)) as archive:
                archive.extractall(folder)
        except zipfile.BadZipFile as error:
            raise PackageError(error) from None
        root.__path__ = [folder]
        sys.modules[root.__name__] = root
        try:
            # The user's own code, which an account would run as well.
            return importlib.import_module(f"{root.__name__}.{name.replace('/', '.')}")
        except (ImportError, SyntaxError) as error:
            raise PackageError(str(error).replace(f"{root.__name__}.", "")) from None
        finally:
            # The functions keep their modules alive; nothing else may find them.
            for loaded in [each for each in sys.modules if each.partition(".")[0] == root.__name__]:
                sys.modules.pop(loaded).__dict__["print"] = write_words
