"""`simulation` of a stimulus: a simulated user, and canned answers for tools."""

from __future__ import annotations

from typing import Any

from vally.spec.diagnostics import Collector, Place, related
from vally.spec.nodes import Node
from vally.spec.sections import Items, Key, Section, Table, read_section, wrong_value
from vally.spec.shapes import Integer, ListOf, Opaque, SectionOf, Text

USER = Table(
    "simulation.user",
    {
        "goal": Key(Text(), "what the user wants", required=True),
        "persona": Key(Text(), "who the user is"),
        "model": Key(Text(), "default the judge model"),
        "max_iterations": Key(Integer(1, 100), "most messages", default=10),
    },
)
TOOL_OVERRIDE = Table(
    "simulation.tool_overrides",
    {
        "tool": Key(Text(), "exact tool name", required=True),
        "server": Key(Text(), "MCP server name"),
        "arguments": Key(Opaque(), "arguments that match, as a JSON value; default {}"),
        "result": Key(Opaque(), "answer", nullable=True),
        "error": Key(Text(blank=True), "error text"),
    },
)
SIMULATION = Table(
    "simulation",
    {
        "user": Key(SectionOf(USER), "simulated user"),
        "tool_overrides": Key(ListOf(SectionOf(TOOL_OVERRIDE)), "answers for MCP tool calls"),
    },
)


def read_simulation(node: Node, place: Place, collector: Collector) -> dict[str, Any] | None:
    """The simulation as a mapping with spec keys, or None when it is wrong or empty."""
    section = read_section(node, SIMULATION, place, collector)
    if section is None:
        return None
    simulation: dict[str, Any] = {}
    user: Section | None = section.get("user")
    if user is not None:
        simulation["user"] = dict(user.values)
    overrides: Items | None = section.get("tool_overrides")
    if overrides:
        simulation["tool_overrides"] = _overrides(overrides, collector)
    return simulation or None


def _overrides(items: Items, collector: Collector) -> list[dict[str, Any]]:
    seen: dict[str, Section] = {}
    for section in items:
        _check_answer(section, collector)
        if "tool" not in section.values or section.is_broken("arguments", "server"):
            continue
        identity = _identity(section)
        if identity in seen:
            first = seen[identity].node
            notes = [related(first, "first here")]
            collector.add(
                "duplicate-tool-override", section.node, section.place, related=notes, tool=section.get("tool")
            )
        seen.setdefault(identity, section)
    return [_override(section) for section in items]


def _override(section: Section) -> dict[str, Any]:
    values = dict(section.values)
    values["arguments"] = _arguments(section)
    return values


def _arguments(section: Section) -> Any:
    return section.get("arguments", {})


def _check_answer(section: Section, collector: Collector) -> None:
    written = [key for key in ("result", "error") if key in section.written]
    if len(written) == 2:
        expected = "exactly one of result and error"
        wrong_value(section.at("error"), section.place.key("error"), collector, expected)
    elif not written:
        collector.add(
            "missing-key", section.node, section.place, where=f"{section.place.label}: ", key="result or error"
        )


def _identity(section: Section) -> str:
    from vally.model.jsonio import canonical_json

    return canonical_json([section.get("tool"), section.get("server"), _arguments(section)])
