"""What `vally` exports, and what importing it costs."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import vally

SPECIFIED = """
API_VERSION hookimpl GraderSpec ExecutorSpec BackendSpec JudgeSpec ReporterSpec CommandSpec ExporterSpec
EvalProviderSpec Capabilities Config CamelConfig grader PluginHost Grader GraderInput GraderResult CompareInput
CompareResult ReadRoot resolve_read_root describe_grader_value grade_trajectory agrade_trajectory resolve_grade_pass
has_grader_error Executor ExecutorOptions TrajectoryBuilder Skill McpServer Attachment ProcessRunner StopSignal
SimulatedUser ProviderConfig Backend TrialItem TrialOptions TrialOutcome GradeRequest Judge JudgeRequest JudgeReply
Reporter Exporter EvalProvider Trajectory Event Metrics compute_metrics attribute_turns TrialResult RunSummary
VallyError ExecutorError TrialSkipped SpecError PluginError BackendError GraderError JudgeError UsageError Stimulus
EvalSpec JudgeClient Matches UnreadableFile ToolSchema TokenUsage Cost RunContext CliContext ExportRequest ExportResult
ForeignSpec ProviderContext RunStart TrialStart TrialPhase TrialDone Diagnostics EvalComplete RunComplete
parse_duration load_eval_spec validate_eval_spec load_project resolve_environment resolve_stimulus stimulus_prompts
parse_skill
"""


@pytest.mark.parametrize("name", vally.__all__)
def test_every_exported_name_exists(name: str) -> None:
    assert getattr(vally, name) is not None


def test_what_the_specification_names_is_exported() -> None:
    assert set(SPECIFIED.split()) - set(vally.__all__) == set()


def stub_modules() -> dict[str, str]:
    """Module by public name, as type checkers see it."""
    tree = ast.parse(Path(vally.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module != "collections.abc"]
    return {alias.asname or alias.name: node.module or "" for node in nodes for alias in node.names}


def test_type_checkers_see_the_same_names() -> None:
    assert set(vally.__all__) == {*stub_modules(), "lazy_names"}


@pytest.mark.parametrize(("name", "module"), sorted(stub_modules().items()))
def test_a_name_is_what_type_checkers_take_it_for(name: str, module: str) -> None:
    assert getattr(vally, name) is getattr(importlib.import_module(module), name)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'vally' has no attribute 'Surely'"):
        vally.Surely  # noqa: B018  # looking it up is the test
    assert "GraderSpec" in dir(vally)


def modules_after(code: str) -> list[str]:
    """Modules that `code` imports in a fresh interpreter."""
    program = (
        f"import sys, json; before = set(sys.modules)\n{code}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    modules: list[str] = json.loads(done.stdout)
    return modules


def test_importing_vally_imports_almost_nothing() -> None:
    assert len([name for name in modules_after("import vally") if name.startswith("vally")]) == 2
    assert len(modules_after("import vally")) <= 4


def test_a_host_costs_little_until_it_loads_something() -> None:
    found = modules_after("from vally import PluginHost; PluginHost()")
    assert not {"pluggy", "stevedore", "importlib_metadata", "pydantic", "yaml", "click", "anyio"} & set(found)


def test_the_hook_module_of_a_plugin_needs_no_models() -> None:
    found = modules_after("from vally import Capabilities, ExecutorSpec, GraderSpec, ReporterSpec, hookimpl")
    assert not {"pydantic", "anyio", "yaml", "stevedore", "importlib_metadata", "quickjs"} & set(found)


def test_listing_needs_no_models() -> None:
    found = modules_after("from vally import PluginHost; PluginHost.from_objects().listing()")
    assert not {"pydantic", "anyio", "yaml", "rich", "click"} & set(found)


def test_running_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "vally", "--version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"{vally.__version__}\n"
