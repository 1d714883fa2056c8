"""From records to a summary: plain data, of which reports only print."""
