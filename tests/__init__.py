"""The project's tests. Their processes keep what they compile, also where PYTHONDONTWRITEBYTECODE is set.

Each of the processes that run them would else compile all modules anew, for ten seconds.
"""

import sys

sys.dont_write_bytecode = False
