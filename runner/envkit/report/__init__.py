"""Reports of a summary: the terminal, a page, Markdown, pictures and exports."""
