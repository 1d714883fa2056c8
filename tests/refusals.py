"""How a YAML file that is refused must be answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from envkit.common.errors import InputError


def assert_refused(read: Callable[[Path], Any], file: Path, line: int, *said: str) -> None:
    """``read`` refuses ``file``, in one line that begins with where, and says all of these."""
    with pytest.raises(InputError) as caught:
        read(file)
    message = str(caught.value)
    assert message.startswith(f"{file}:{line}: ")
    assert "\n" not in message
    for words in said:
        assert words in message
