"""The proxy: the policy for any agent that takes a base URL. Imported by its command alone."""
