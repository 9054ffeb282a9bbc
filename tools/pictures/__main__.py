"""`python -m tools.pictures`: writes docs/pictures anew."""

from tools.pictures import FOLDER, pictures

if __name__ == "__main__":
    for name, picture in pictures().items():
        (FOLDER / name).write_text(picture, "utf-8")
