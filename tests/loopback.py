"""A server of HTTP on this machine's loopback, as long as it is needed."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from typing import Any


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Does not write to stderr what it is asked for."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def serving(handler: Callable[..., Any]) -> Iterator[str]:
    """The address of a server whose requests are answered by ``handler``."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
