"""`python -m tools.reference`: writes the blocks of the pages in docs anew."""

from tools.reference.pages import DOCS, PAGES, written

if __name__ == "__main__":
    for page in PAGES:
        (DOCS / page).write_text(written(page), encoding="utf-8")
