"""One module per command, each with ``add_arguments(parser)`` and ``run(arguments)``, which returns the exit status."""
