"""`policyctx store`: what was offloaded, and what keeps it in order."""
