"""The command line: thin commands that call the stages and print what they return."""
