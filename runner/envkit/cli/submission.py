"""What ``envkit submit`` and ``envkit fleet`` have in common: a submission, from its first job to its last.

Each node has a record of its own in the submission's folder, which has one too: of its settings, its jobs and how they
ended.
"""

from __future__ import annotations
