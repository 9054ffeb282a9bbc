"""From a YAML file to a frozen, validated `ModelConfig`, or to every problem in it at once."""
