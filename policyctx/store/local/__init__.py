"""The store's backend for a folder of this computer."""
