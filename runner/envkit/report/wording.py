"""Names that commands import from here. Each stands in the module that is named below."""

from envkit.report.certainty import CONFIDENCE
from envkit.report.certainty import rows as certainty
from envkit.report.execution_context import trained
from envkit.report.lines import machine
from envkit.report.observed import rows as evidence
from envkit.report.observed import seen, shown
from envkit.report.parts import together
from envkit.report.verdict import rows as verdicts

__all__ = ("CONFIDENCE", "certainty", "evidence", "machine", "seen", "shown", "together", "trained", "verdicts")
