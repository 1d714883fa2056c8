"""A server on loopback with one fault, for what is downloaded: what channels and package indexes do on a bad day."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.loopback import Quiet, serving

# A request is never answered, refused, answered with some page, or with half of the file.
FAULTS = ("hangs", "404", "page", "cut short")
PAGE = b"<html><body>please log in</body></html>"


class _Handler(Quiet):
    """``fault`` is how those requests go whose path has ``where`` in it; the others get their files."""

    def __init__(self, *arguments: object, fault: str, where: str, ended: threading.Event, directory: str) -> None:
        self.fault, self.where, self.ended = fault, where, ended
        super().__init__(*arguments, directory=directory)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        if self.where not in self.path:
            super().do_GET()
        elif self.fault == "hangs":
            self.ended.wait()
        elif self.fault == "404":
            self.send_error(404)
        elif self.fault == "page":
            self._answer(PAGE, len(PAGE))
        else:
            content = Path(self.translate_path(self.path)).read_bytes()
            self._answer(content[: len(content) // 2], len(content))

    do_HEAD = do_GET

    def _answer(self, content: bytes, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if content == PAGE else "application/octet-stream")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@contextlib.contextmanager
def served_with(fault: str, folder: Path, where: str = "") -> Iterator[str]:
    """The address of ``folder``. Whose path has ``where`` in it has the fault."""
    ended = threading.Event()
    handler = functools.partial(_Handler, fault=fault, where=where, ended=ended, directory=str(folder))
    with serving(handler) as address:
        try:
            yield address
        finally:
            ended.set()
