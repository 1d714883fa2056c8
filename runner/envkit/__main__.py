"""``python -m envkit`` is the console script ``runner``."""

import sys

from envkit.cli import main

if __name__ == "__main__":
    sys.exit(main())
