"""Run a user's own command under a profile: what ``envkit exec`` is made of."""
