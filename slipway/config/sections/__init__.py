"""The sections of a model config, a module each."""
