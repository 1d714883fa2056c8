"""Search for the best environment on this machine: a space of settings, looks at candidates, and a confirmation."""
