"""Calls that need no policy file and no session: each is one preset, applied once.

What is offloaded or summarised, when, under which name and with what words, the presets say.
"""
