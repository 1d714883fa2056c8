"""From records to a result: plain data, of which reports only print."""
