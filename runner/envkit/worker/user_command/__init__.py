"""What runs a user's training command, reads its output, and looks at the process."""
