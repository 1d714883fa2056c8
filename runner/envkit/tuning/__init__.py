"""Search for the best environment on this machine: a space of settings, trials of candidates, and a confirmation."""
