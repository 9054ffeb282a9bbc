"""`python -m tools.reference`: writes the pages into docs."""

from pathlib import Path

from tools.reference import commands, configs, metrics, resource_types, variables

DOCS = Path(__file__).parents[2] / "docs"
# Every page of these folders is generated.
FOLDERS = ("commands",)


def pages() -> dict[str, str]:
    """Returns every generated page as Markdown, by its path in docs."""
    return {
        **configs.pages(),
        **commands.pages(),
        "reference/variables.md": variables.render(),
        "reference/metrics.md": metrics.render(),
        "embedded-aws/resource-types.md": resource_types.render(),
    }


def strays(generated: dict[str, str]) -> list[Path]:
    """Returns the pages in `FOLDERS` that nothing generates any more.

    Args:
        generated: result of `pages`.
    """
    found = (path for folder in FOLDERS for path in (DOCS / folder).glob("*.md"))
    return [path for path in found if path.relative_to(DOCS).as_posix() not in generated]


def main() -> None:
    """Writes the pages, and removes strays."""
    generated = pages()
    for name, text in generated.items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in strays(generated):
        path.unlink()


if __name__ == "__main__":
    main()
