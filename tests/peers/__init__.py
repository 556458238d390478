"""Policies that say what other libraries do, held against these libraries."""
