"""What every other package may use: errors and exit statuses, files, locks, progress."""
