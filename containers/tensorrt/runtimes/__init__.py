"""The runtimes that can execute a step graph, and the rule that selects one."""
