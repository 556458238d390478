from __future__ import annotations

from pytest_bdd import scenarios

from policyctx.resources import shipped_folder

scenarios(str(shipped_folder("features")))
