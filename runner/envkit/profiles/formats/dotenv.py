"""A file of ``NAME=value`` lines, in the form that its readers agree on.

``docker run --env-file`` takes everything after ``=`` as it stands, quotes too; Compose and python-dotenv take quotes,
``$`` and `` #`` for themselves. Plain values are read alike by all of them. A value that needs quotes is refused.
Sources: https://docs.docker.com/reference/cli/docker/container/run/#env,
https://docs.docker.com/compose/how-tos/environment-variables/variable-interpolation/ and
https://saurabh-kumar.com/python-dotenv/
"""

from __future__ import annotations

import re

from envkit.profiles.formats.messages import (
    DOLLAR,
    LEADING_QUOTE,
    LINE_BREAK,
    NUMBER_SIGN,
    OUTER_BLANK,
    Has,
    NotReadAlike,
)
from envkit.profiles.formats.resolved import Resolved, refuse

NOT_ALIKE = {
    Has(LINE_BREAK): re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]"),
    Has(OUTER_BLANK): re.compile(r"\A\s|\s\Z"),
    Has(LEADING_QUOTE): re.compile(r"\A['\"`]"),
    Has(DOLLAR): re.compile(r"\$"),
    Has(NUMBER_SIGN): re.compile(r"(\A|\s)#"),
}


def dotenv(resolved: Resolved) -> str:
    """The lines of a ``.env`` file. Raises InputError for a value that not all readers would read alike."""
    variables = resolved.environment.variables
    for problem, pattern in NOT_ALIKE.items():
        refuse(resolved, "dotenv", variables.items(), pattern, problem, NotReadAlike())
    return resolved.comments() + "".join(f"{name}={value}\n" for name, value in variables.items())
