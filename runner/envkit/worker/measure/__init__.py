"""The timed training of a workload, and what the machine did meanwhile."""
