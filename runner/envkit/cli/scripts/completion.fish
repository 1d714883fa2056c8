# Complete envkit in fish. Put this into ~/.config/fish/completions/envkit.fish
