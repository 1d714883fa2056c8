"""How input that is refused must be answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from envkit.common.errors import InputError
from envkit.common.messages import InFile
from envkit.messages import Message, MessageError
from envkit.rendering import text_of


def refusal(call: Callable[..., Any], *arguments: Any, error: type[MessageError] = InputError) -> Message | str:
    """Return the message with which ``call`` refuses ``arguments``."""
    with pytest.raises(error) as caught:
        call(*arguments)
    return caught.value.message


def assert_refused(read: Callable[[Path], Any], file: Path, line: int, *said: str) -> None:
    """``read`` refuses ``file`` at ``line``, and the text of that says all of these."""
    with pytest.raises(InputError) as caught:
        read(file)
    message = caught.value.message
    assert isinstance(message, InFile)
    assert (message.file, message.line) == (str(file), line)
    for words in said:
        assert words in text_of(caught.value)
