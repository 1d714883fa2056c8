"""A file of ``NAME=value`` lines, in the form that its readers agree on.

``docker run --env-file`` takes everything after ``=`` as it stands, quotes too; Compose and python-dotenv take quotes,
``$`` and `` #`` for themselves. What all of them read alike is a plain value. What would need quotes is refused.
Sources: https://docs.docker.com/reference/cli/docker/container/run/#env,
https://docs.docker.com/compose/how-tos/environment-variables/variable-interpolation/ and
https://saurabh-kumar.com/python-dotenv/
"""

from __future__ import annotations

import re

from envkit.profiles.formats.resolved import Resolved, refuse

FIX = "readers of such files don't agree on it; use --format docker or shell"
NOT_ALIKE = {
    "it has a line break or another control character": re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]"),
    "it begins or ends with a blank": re.compile(r"\A\s|\s\Z"),
    "it begins with a quote": re.compile(r"\A['\"`]"),
    "it has a '$'": re.compile(r"\$"),
    "it has a '#' after a blank or at its beginning": re.compile(r"(\A|\s)#"),
}


def dotenv(resolved: Resolved) -> str:
    """The lines of a ``.env`` file. Raises InputError for a value that not all readers would read alike."""
    variables = resolved.environment.variables
    for what, pattern in NOT_ALIKE.items():
        refuse(resolved, "dotenv", variables.items(), pattern, what, FIX)
    return resolved.comments() + "".join(f"{name}={value}\n" for name, value in variables.items())
