"""Statistics of samples: intervals, verdicts and stopping. Functions of numbers; nothing here reads a record."""
