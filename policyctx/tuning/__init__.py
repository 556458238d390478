"""Settings of a policy, found by replaying recorded sessions under many of them."""
