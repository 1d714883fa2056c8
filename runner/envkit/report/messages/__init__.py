"""Messages of reports: verdicts, cautions, labelled lines and advice. All ratios are speedups: above 1 is faster."""
