"""Shared by every package: errors and exit statuses, files, locks, progress."""
