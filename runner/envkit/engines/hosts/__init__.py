"""Hosts without a batch system: ssh starts on each what srun starts on a node of a cluster."""
