"""Where agents and hosts use policyctx: one thin module each, imported only when it is used."""
