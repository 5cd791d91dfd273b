"""People and their roles, API tokens, one-time sign-in links, and the audit log."""
