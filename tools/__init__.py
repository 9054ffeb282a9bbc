"""Programs for maintainers, which are not installed with the package."""
