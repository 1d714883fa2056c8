"""The networks of workloads that are too large to be written down in a line. They import torch at once."""
