"""From a profile's YAML to an Environment: read, check and resolve it for one machine, and print it for other tools."""
