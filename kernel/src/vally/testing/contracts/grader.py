"""The contract of graders."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.errors import ConfigInvalid
from vally.testing.contracts.case import Case
from vally.testing.contracts.watched_grader import WatchedGrader
from vally.testing.grading import grade
from vally.testing.hosts import plugin_host
from vally.testing.trajectories import event, trajectory

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.results import GraderResult
    from vally.model.trajectory import Trajectory
    from vally.records import GraderSpec

Config = Mapping[str, object]
_DIFF = """\
diff --git a/app.json b/app.json
new file mode 100644
--- /dev/null
+++ b/app.json
@@ -0,0 +1 @@
+{}
"""


def grader_contract(
    record: GraderSpec,
    *,
    valid: Sequence[Config],
    invalid: Sequence[Config] = (),
    trajectories: Sequence[Trajectory] = (),
    **facts: Any,
) -> list[Case]:
    """Cases every grader passes. `valid` and `invalid` are config mappings, at least one valid one.

    Each valid config grades `trajectories` and some of the kit's own: empty, ordinary, and one with odd events.
    `facts` are those of `vally.testing.grade`, such as `judge`.
    """
    if not valid:
        raise ValueError("a contract needs at least one valid config")
    cases = [Case("record", _record, record), Case("unknown-key", _refuses, record, {"surely-no-such-key": 1})]
    cases += [Case(f"valid-{number}", _accepts, record, config) for number, config in enumerate(valid, 1)]
    cases += [Case(f"invalid-{number}", _refuses, record, config) for number, config in enumerate(invalid, 1)]
    checks = {
        "pure": _pure,
        "repeatable": _repeatable,
        "no-exception": _no_exception,
        "untouched": _untouched,
        "round-trip": _round_trip,
    }
    subject = _Subject(record, trajectories, facts)
    for number, config in enumerate(valid, 1):
        cases += [Case(f"{name}-{number}", check, subject, config) for name, check in checks.items()]
    return cases


class _Subject:
    """A grader and what it is given."""

    def __init__(self, record: GraderSpec, trajectories: Sequence[Trajectory], facts: Mapping[str, Any]) -> None:
        self.record = record
        self._trajectories = trajectories
        self._facts = facts

    def inputs(self, directory: Path) -> list[Trajectory]:
        """Trajectories whose workspace exists."""
        (directory / "workspace").mkdir(exist_ok=True)
        work = str(directory / "workspace")
        own = [made.model_copy(update={"work_dir": work}) for made in (_empty(), _ordinary(), _odd())]
        return [*self._trajectories, *own]

    def grade(
        self, config: Config, given: Trajectory, directory: Path, record: GraderSpec | None = None
    ) -> GraderResult:
        """Grade through the machinery of a run."""
        return grade(record or self.record, config, given, **{"spec_dir": directory, **self._facts})


def _empty() -> Trajectory:
    return trajectory()


def _ordinary() -> Trajectory:
    return trajectory(
        event("user_message", content="Write app.json.", turn=0),
        event("turn_start", turn_id="0"),
        event("tool_call", tool_name="write", tool_call_id="1", arguments={"path": "app.json"}, turn_id="0"),
        event("tool_result", tool_name="write", tool_call_id="1", success=True, result="written"),
        event("token_usage", input_tokens=10, output_tokens=5, model="m"),
        event("assistant_message", content="I wrote app.json."),
        event("turn_end", turn_id="0"),
        diff=_DIFF,
    )


def _odd() -> Trajectory:
    return trajectory(
        event("assistant_message"),
        event("assistant_message", content=None),
        event("tool_call", tool_call_id="1"),
        event("tool_result", tool_call_id="2", success=False, result={"nested": ["\x00", "\ud800", 1e400]}),
        event("tool_call", tool_name=7, arguments="not a mapping"),
        event("tool_call", tool_name="bash", tool_call_id="3", arguments=[1, None]),
        event("token_usage", input_tokens="many"),
        event("something-new", anything={"at": "all"}),
        event("system"),
        event("error"),
        output="\x1b[31m\x00\u2028",
        end_reason="made-up",
    )


def _host(record: GraderSpec) -> PluginHost:
    host = plugin_host(record)
    assert host.require("grader", record.name) is record
    return host


def _record(record: GraderSpec, _: Path) -> None:
    host = _host(record)
    host.config_model(record)
    grader = host.create(record)
    comparable = callable(getattr(grader, "compare", None))
    assert comparable == record.comparable, "'comparable' must say whether there is a method 'compare'"


def _accepts(record: GraderSpec, config: Config, _: Path) -> None:
    _host(record).parse_config(record, config)


def _refuses(record: GraderSpec, config: Config, _: Path) -> None:
    try:
        _host(record).parse_config(record, config)
    except ConfigInvalid as error:
        for problem in error.problems:
            assert problem.strip(), "a problem must say something"
            assert "\n" not in problem, f"a problem must be one line: {problem!r}"
    else:
        raise AssertionError(f"the config {dict(config)!r} must be refused")


def _pure(subject: _Subject, config: Config, _: Path) -> None:
    host = _host(subject.record)
    parsed = host.parse_config(subject.record, config)
    grader = host.create(subject.record)
    before = copy.deepcopy(parsed)
    for name, types in (("default_name", str | None), ("asserts_absence", bool), ("settled_verdict", bool | None)):
        method = getattr(grader, name, None)
        if method is not None:
            first, second = method(parsed), method(parsed)
            assert isinstance(first, types), f"{name} returned {first!r}"
            assert first == second, f"{name} returned {first!r}, then {second!r}"
    assert parsed == before, "the config was changed"


def _repeatable(subject: _Subject, config: Config, directory: Path) -> None:
    for given in subject.inputs(directory):
        first, second = (_lasting(subject.grade(config, given, directory)) for _ in range(2))
        assert first == second, f"two results differ: {first} and {second}"


def _lasting(result: GraderResult) -> dict[str, Any]:
    # Durations differ from call to call.
    written = result.model_dump(mode="json", by_alias=True)
    metadata = {key: value for key, value in (written["metadata"] or {}).items() if not key.endswith("Ms")}
    return {**written, "metadata": metadata, "timestamp": None}


def _no_exception(subject: _Subject, config: Config, directory: Path) -> None:
    for given in subject.inputs(directory):
        result = subject.grade(config, given, directory)
        for prefix in ("Grader execution error: ", "Grader returned an invalid result: "):
            assert not result.evidence.startswith(prefix), (
                f"{result.evidence} (trajectory with {len(given.events)} events)"
            )


def _untouched(subject: _Subject, config: Config, directory: Path) -> None:
    # A run hands out copies, so that the record is safe; other graders of the trial would see the change.
    watched = WatchedGrader(subject.record)
    for given in subject.inputs(directory):
        subject.grade(config, given, directory, watched.record)
        assert not watched.changed, "the trajectory was changed"


def _round_trip(subject: _Subject, config: Config, directory: Path) -> None:
    from vally.model.results import GraderResult

    for given in subject.inputs(directory):
        result = subject.grade(config, given, directory)
        text = json.dumps(result.model_dump(mode="json", by_alias=True, exclude_none=True))
        again = GraderResult.model_validate(json.loads(text))
        assert again.model_dump(mode="json") == result.model_dump(mode="json"), "JSON does not give the result back"
