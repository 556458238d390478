"""The store in a folder of the local disk."""
