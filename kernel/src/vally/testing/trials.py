"""What executors and backends are given, with defaults that need nothing but an empty directory."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vally.model.evalspec import Stimulus
    from vally.run.inputs import ExecutorOptions
    from vally.run.trial import RunContext, TrialItem, TrialOptions

TIMEOUT_MS = 60_000


def stimulus(*turns: str, name: str = "stimulus", **fields: Any) -> Stimulus:
    """An effective stimulus of these prompts."""
    from vally.model.evalspec import Stimulus

    prompts = turns or ("Do it.",)
    prompt = "\n\n".join(prompts)
    document = {"name": name, "prompt": prompt, **({"turns": list(prompts)} if len(prompts) > 1 else {})}
    facts = {"document": document, "has_turns": len(prompts) > 1, **fields}
    return Stimulus(name=name, prompt=prompt, turns=tuple(prompts), **facts)


def process_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The part of this process's environment that every program needs, and `extra`."""
    return {name: os.environ[name] for name in ("PATH", "LANG", "SystemRoot") if name in os.environ} | dict(extra or {})


def executor_options(
    directory: Path, *, process_env: Mapping[str, str] | None = None, **fields: Any
) -> ExecutorOptions:
    """Options of one trial: `work`, `trial` and `spec` are made below `directory`; `fields` replace what is made."""
    from vally.processes import LocalProcessRunner
    from vally.run.environment import agent_environment
    from vally.run.inputs import ExecutorOptions

    work, trial, spec = (_made(directory / name) for name in ("work", "trial", "spec"))
    for name in ("home", "tmp"):
        _made(trial / name)
    trial_id = str(fields.pop("trial_id", None) or uuid.uuid4())
    caller = process_environment(process_env)
    config = fields.get("executor_config")
    env, base_env = agent_environment(
        caller,
        pass_env=getattr(config, "pass_env", None) or (),
        home_dir=None if getattr(config, "home", None) == "host" else trial / "home",
        tmp_dir=trial / "tmp",
        workspace=work,
        spec_env={},
        assets_dir=None,
        trial_id=trial_id,
    )
    timeout_ms = fields.pop("timeout_ms", TIMEOUT_MS)
    facts: dict[str, Any] = {
        "item_id": "contract::main::default-model::stimulus::trial-0",
        "trial_id": trial_id,
        "work_dir": work,
        "trial_dir": trial,
        "spec_dir": spec,
        "env": env,
        "base_env": base_env,
        "process_env": caller,
        "timeout_ms": timeout_ms,
        "deadline": time.monotonic() + timeout_ms / 1000,
        "runner": LocalProcessRunner(trial_id, env, cwd=work, owned_dirs=[work, trial]),
    }
    return ExecutorOptions(**{**facts, **fields})


def trial_item(directory: Path, given: Stimulus, *, executor: str = "scripted", **fields: Any) -> TrialItem:
    """A planned trial of a stimulus whose spec lies in `directory`."""
    from vally.model.evalspec import ExecutorChoice, Scoring
    from vally.run.trial import JudgeSettings, TrialItem

    index = fields.get("trial_index", 0)
    facts: dict[str, Any] = {
        "run_id": "contract",
        "item_id": f"eval.yaml::main::default-model::{given.name}::trial-{index}",
        "eval_name": "contract",
        "eval_file_path": "eval.yaml",
        "eval_index": 0,
        "stimulus": given,
        "trial_index": index,
        "total_trials": index + 1,
        "executor": ExecutorChoice(name=executor),
        "spec_dir": directory,
        "spec_path": directory / "eval.yaml",
        "project_root": directory,
        "scoring": Scoring(),
        "judge": JudgeSettings(model="scripted-model"),
        "timeout_ms": TIMEOUT_MS,
        "work_dir": directory,
        "segments": ("contract", given.name, "default-model", f"trial-{index}"),
    }
    return TrialItem(**{**facts, **fields})


def trial_options(executor: Any, plugins: Sequence[object], **fields: Any) -> TrialOptions:
    """What a backend gets beside an item: an executor object and a host of `plugins`."""
    from vally.run.redaction import Redactor
    from vally.run.trial import TrialOptions
    from vally.testing.hosts import plugin_host

    facts = {
        "host": plugin_host(*plugins),
        "executor": executor,
        "process_env": process_environment(),
        "redactor": Redactor({}),
    }
    return TrialOptions(**{**facts, **fields})


def run_context(directory: Path, **fields: Any) -> RunContext:
    """What a backend may know of the run; its cache lies in `directory`."""
    from vally.run.trial import RunContext

    facts: dict[str, Any] = {
        "run_id": "contract",
        "cache_dir": _made(directory / "cache"),
        "project_root": directory,
        "process_env": process_environment(),
    }
    return RunContext(**{**facts, **fields})


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()
