"""ZIP files as the CDK CLI makes them of folders."""

import io
import zipfile
from pathlib import Path


def zipped(folder: Path) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return content.getvalue()
