"""Help of options that several commands have, where it is chosen by what calls ``add_argument``."""

from __future__ import annotations

START_WORKERS = "start workers with"
MEASURED = "local: measure this interpreter; nothing is installed there (default: the one of envkit)"
OF_COMMAND = "local: look for libraries in this interpreter's environment (default: that of COMMAND's Python)"
AS_JSON = "print the result as JSON instead of a report"
N_BLOCKS = "measure N blocks instead, however long they take"
EVERY_RANK = "every rank gets the environment that is searched for"
SEARCH_ON_THESE = "search on these nodes, e.g. node1,node2 or node[1-2]"
SEARCH_ON_N = "search on N nodes of a Slurm cluster together, and confirm on all of them"
