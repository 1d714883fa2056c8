"""Run a user's training command, read its output, and look at the process."""
