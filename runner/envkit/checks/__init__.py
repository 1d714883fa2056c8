"""Did a profile take effect, and what would spoil a measurement: checks of evidence, doctor and preflight."""
