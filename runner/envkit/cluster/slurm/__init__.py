"""Measure on the nodes of a Slurm cluster: one job, one run of ``envkit bench`` and one record per node.

settings -> script -> client (sbatch) -> node (on each node) -> follow -> collect
"""
