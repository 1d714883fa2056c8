"""What can be seen of an image from inside: its machine, packages and libraries."""
