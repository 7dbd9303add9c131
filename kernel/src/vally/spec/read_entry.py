"""One grader entry between the file and the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vally.model.evalspec import GraderEntry, Position
from vally.model.merging import copied
from vally.records import GraderSpec
from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import MappingNode, Node


@dataclass(slots=True)
class ReadEntry:
    """One entry as written. `parsed` is the validated config; `valid` tells that nothing was wrong with it.

    `problem` is the first one because of which something that was written is not in the fields here.
    """

    node: Node
    place: Place
    type: str
    record: GraderSpec | None = None
    config: Mapping[str, object] = field(default_factory=dict)
    parsed: Any = None
    name: str | None = None
    turn: int | None = None
    scope: str | Mapping[str, object] | None = None
    required: bool = False
    weight: float | None = None
    constraint: str | None = None
    valid: bool = True
    problem: str | None = None

    def at(self, key: str) -> Node:
        """Where to report something about a field."""
        return (self.node.get(key) if isinstance(self.node, MappingNode) else None) or self.node

    @property
    def evidence(self) -> frozenset[str]:
        """What the entry reads beside the trajectory."""
        return frozenset(self._said("evidence"))

    @property
    def warnings(self) -> list[str]:
        """What the config says about settings that are legal but hardly meant."""
        return self._said("warnings")

    def _said(self, name: str) -> list[str]:
        # Models are slow to say that they lack something; their classes are not.
        method = getattr(self.parsed, name, None) if hasattr(type(self.parsed), name) else None
        try:
            said = method() if callable(method) else []
            return [item for item in ([said] if isinstance(said, str) else said) if isinstance(item, str)]
        except Exception:  # a plugin may raise anything; what it would say stays unknown
            return []

    @property
    def is_judge(self) -> bool:
        """Whether a judge decides."""
        return self.record is not None and (self.record.requires_judge or self.record.kind == "llm")

    def finished(self, *, shared: bool = False) -> GraderEntry:
        """The entry as the run uses it; of one that several stimuli share each gets a config of its own."""
        node = self.node
        return GraderEntry(
            type=self.type,
            config=copied(self.config) if shared else self.config,
            name=self.name,
            turn=self.turn,
            scope=self.scope,
            required=self.required,
            weight=self.weight,
            constraint=self.constraint,
            position=Position(file=node.source.display, line=node.line, column=node.column),
            pointer=self.place.pointer,
            problem=self.problem,
        )

    def report(self, collector: Collector, problem: str, at: Node, place: Place, *, hint: str | None = None) -> None:
        """Add `invalid-grader-config`."""
        collector.add("invalid-grader-config", at, place, hint=hint, type=self.type, problem=problem)
        self.valid = False

    def refuse(self, collector: Collector, problem: str, at: Node, place: Place) -> None:
        """Add `invalid-grader-config` for a part that cannot be read."""
        self.report(collector, problem, at, place)
        self.lose(problem)

    def lose(self, problem: str) -> None:
        """Remember that a part, which was reported already, cannot be read."""
        self.valid = False
        self.problem = self.problem or problem
