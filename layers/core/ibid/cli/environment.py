"""The one place of the commands that reads the environment."""

import os

from ibid.settings import Settings, read_settings


def settings_for(**given: object) -> Settings:
    """Read the settings, what the command line gave first.

    Raises:
        Misconfigured: As `read_settings`.
    """
    return read_settings(os.environ, **given)
