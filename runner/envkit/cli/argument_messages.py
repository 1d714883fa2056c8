"""Messages of values on the command line that are not of the form that an option takes."""

from __future__ import annotations

from envkit.messages import Message

# The forms of values.
TIME = "a time above 0; write for example 60s, 4m or 1h"
SHARE = "a share between 0 and 1; write for example 4% or 0.04"
LIMIT = "a share of the baseline's memory; write for example 10% or 0.1, and 150% for more than 1"
COUNT = "a whole number above 0"
DATE = "a date; write for example 2026-11-01, 12h, 7d or 4w"

# Stands for the name of an option that has no name.
COMMAND = "the command after --"

# Help of options that several commands have, where it is chosen by what calls ``add_argument``.
START_WORKERS = "start workers with"
MEASURED = "local: measure this interpreter; nothing is installed there (default: the one of envkit)"
OF_COMMAND = "local: look for libraries in this interpreter's environment (default: that of COMMAND's Python)"
AS_JSON = "print the result as JSON instead of a report"
N_BLOCKS = "measure N blocks instead, however long they take"
EVERY_RANK = "every rank gets the environment that is searched for"
SEARCH_ON_THESE = "search on these nodes, e.g. node1,node2 or node[1-2]"
SEARCH_ON_N = "search on N nodes of a Slurm cluster together, and confirm on all of them"


class NoUnit(Message):
    """A time has no unit."""

    template = "'{number}' has no unit; write {number}s or {number}m"

    number: str


class NotOfForm(Message):
    """A value is not of the form that an option takes."""

    template = "'{given}' is not {form}"

    given: str
    form: str  # one of those above


class NoNodeNames(Message):
    """A list of nodes is empty."""

    template = "'{given}' names no node; write for example node1,node2"

    given: str


class NotCounts(Message):
    """A value is no list of whole numbers that are ``least`` or more."""

    template = "'{given}' is not a list of whole numbers, {least} or more; write them as 1,2,4"

    given: str
    least: int
