"""`python -m tools.reference`: writes the pages into docs."""

from pathlib import Path

from tools.reference import commands, configs, metrics, resource_types, variables

DOCS = Path(__file__).parents[2] / "docs"


def pages() -> dict[str, str]:
    """Returns every generated page as Markdown, by its path in docs."""
    return {
        **configs.pages(),
        "commands.md": commands.render(),
        "reference/variables.md": variables.render(),
        "reference/metrics.md": metrics.render(),
        "embedded-aws/resource-types.md": resource_types.render(),
    }


def main() -> None:
    """Writes the pages."""
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
