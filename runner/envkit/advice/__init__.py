"""What a training that runs shows of itself, why that costs time, and which profiles are worth trying first."""
