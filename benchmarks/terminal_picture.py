"""Draw the report of a run as a terminal shows it: an SVG file for the README.

``python -m benchmarks.terminal_picture DIR FILE`` reads the record in DIR. The picture requests no font from elsewhere.
"""

from __future__ import annotations

import argparse
import io
import re
from pathlib import Path

from envkit.analysis.result import conclude
from envkit.bench import record
from envkit.bench.run import Run
from envkit.report import commands, model, terminal
from rich.console import Console

COLUMNS = 80
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def drawn(folder: Path) -> str:
    """Return the SVG of the report on the run in ``folder``. Raise InputError for a record that can't be read."""
    events = record.read(folder)
    out = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    out.print(f"$ {commands.started_with(events)}", style="bold", soft_wrap=True)
    out.print()
    terminal.show(model.report_of(conclude(Run.parse(events)), str(folder)), out)
    return FONT.sub("", out.export_svg(title="envkit", unique_id="terminal"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder of a run")
    parser.add_argument("file", metavar="FILE", type=Path, help="the SVG file to write")
    arguments = parser.parse_args()
    arguments.file.write_text(drawn(arguments.folder), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
