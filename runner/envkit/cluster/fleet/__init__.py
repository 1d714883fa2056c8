"""A fleet: the same measurement on many nodes, one record each. Which nodes are slow, and what is different on them?

    records -> reading.py -> nodes -> comparability.py (which can be compared) -> slow.py, differences.py (statistics)
      -> findings.py -> screen.py, page.py, prometheus.py
    two reports -> kept.py -> nodes -> diff.py, changes.py (statistics) -> diff_screen.py, prometheus.py

Data flows one way: nothing after ``reading.py`` opens a record, and the reports only print what was found.
"""
