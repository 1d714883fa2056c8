"""What samples say: intervals, verdicts and stopping. Functions of numbers; nothing here reads a record."""
