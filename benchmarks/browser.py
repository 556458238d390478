"""Chromium without a window, worked through its driver; nothing is downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
_DRIVER = shutil.which("chromedriver")
# Pixels; what is narrower is a phone.
_DESK = 600


@contextmanager
def chromium(*, width: int = 1280, height: int = 900) -> Iterator[WebDriver]:
    """Yield a new browser. Raises `FileNotFoundError` where there is none."""
    if _CHROMIUM is None or _DRIVER is None:
        raise FileNotFoundError("no chromium with chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = _CHROMIUM
    for argument in ("headless=new", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--window-size={width},{height}")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # as root it runs in no other way
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(_DRIVER))
    try:
        yield browser
    finally:
        browser.quit()


def emulated(
    browser: WebDriver, *, width: int = 1280, height: int = 900, scheme: str = "light"
) -> None:
    """Make the browser one with this width and height in pixels, on a light or dark system."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < _DESK}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme_feature]})
