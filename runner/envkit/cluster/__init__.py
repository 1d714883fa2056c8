"""Many nodes: what runs on a Slurm cluster, and which nodes of a fleet are slow."""
