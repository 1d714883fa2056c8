"""Words that the hook prints inside a user's program, which can't import message classes if the kit fails there."""

NO_EVIDENCE = "envkit: no evidence: {error}: {reason}"
