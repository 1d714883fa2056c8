"""What a summary says to people and to other programs: the terminal, a page, Markdown, pictures and exports."""
