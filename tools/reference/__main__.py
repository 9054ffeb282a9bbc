"""`python -m tools.reference`: writes docs/reference/variables.md and the other pages below."""

from pathlib import Path

from tools.reference import metrics, resource_types, variables

ROOT = Path(__file__).parents[2]
PAGES = {
    "reference/variables.md": variables.render,
    "reference/metrics.md": metrics.render,
    "embedded-aws/resource-types.md": resource_types.render,
}


def main() -> None:
    """Writes the pages."""
    for name, render in PAGES.items():
        (ROOT / "docs" / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
