"""The environment of one agent process."""

from __future__ import annotations

from collections.abc import Mapping

from vally import ExecutorOptions, Stimulus
from vally_executor_command.config import CommandConfig
from vally_executor_command.templates import fill

_HOME = (
    "HOME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)
_RESERVED = ("EVALUATE_", "VALLY_")


def process_environment(
    config: CommandConfig, stimulus: Stimulus, options: ExecutorOptions, values: Mapping[str, str]
) -> dict[str, str]:
    """The trial's environment with what the config passes on, the caller's home if asked for, and the config's own."""
    caller = options.process_env
    passed = {name: caller[name] for name in config.pass_env if name in caller and not name.startswith(_RESERVED)}
    env = {**passed, **options.env}
    if config.home == "host":
        kept = stimulus.merged_environment.env
        for name in _HOME:
            if name not in kept:
                env.pop(name, None)
        env.update({name: caller[name] for name in _HOME if name in caller and name not in kept})
    return {**env, **{name: fill(text, values) for name, text in config.env.items()}}
