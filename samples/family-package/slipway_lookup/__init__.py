"""The container `lookup`: a server that answers from a table in `table.json`."""
