"""Run a user's own command under a profile: what ``envkit exec`` is made of.

A command starts tens of milliseconds later than it would alone, so what is imported before it starts is kept small: no
YAML, no dataclasses, and nothing of an engine where the command runs on this machine.
"""
