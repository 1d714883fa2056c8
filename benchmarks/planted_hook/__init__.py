"""What benchmarks.planted puts into the workers' PYTHONPATH."""
