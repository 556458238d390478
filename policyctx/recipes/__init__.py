"""Recipes: calls that need no policy file and no session. Each applies one preset once.

The presets define what is offloaded or summarised, when, under which name and with which wording.
"""
