"""Reports of a result: the terminal, a page, Markdown, pictures and exports."""
