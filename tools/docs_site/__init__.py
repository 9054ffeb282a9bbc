"""What the documentation site needs beside MkDocs: `make docs`."""
