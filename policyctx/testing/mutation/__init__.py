"""Mutation: a policy with one value changed, and whether any scenario notices."""
