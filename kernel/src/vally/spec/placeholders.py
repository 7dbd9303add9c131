"""Filling `${NAME}` placeholders: which scalars may use which values, and what stays as written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from vally.spec.diagnostics import Collector, Place
from vally.spec.masking import find_holes
from vally.spec.nodes import Entry, Hole, MappingNode, Node, ScalarNode, SequenceNode, scalars
from vally.text.secret_names import is_secret_name, is_secret_value

ROOT = Place()
LITERAL = "literal"
"""Text for agents, judges and shells: parameters and defaults are filled, anything else stays as written."""
PROCESS = "process"
"""Paths and what starts processes: the process environment counts too, and a value must be found."""
SETTING = "setting"
"""Everything else: parameters and defaults, and a value must be found."""
IGNORED = "ignored"
"""Content that has no effect: nothing is filled."""
WORKING_DIRECTORY = "working-directory"
"""Like PROCESS, but `${workspace}` stays for the run."""
RUBRIC = "rubric"
"""Like LITERAL; an item that YAML took for a mapping or a list is its source text."""

Rule = str | Mapping[str, object]
ANY = "*"
SOURCE_TEXT = "source"
"""Tag of a scalar made from the source text of a collection."""

_NUMBER = "row_number"
_ROW = "row."
_EVAL = "eval."


def _rules(**rules: Rule) -> Mapping[str, object]:
    return MappingProxyType(dict(rules))


def _every(rule: Rule) -> Mapping[str, object]:
    return MappingProxyType({ANY: rule})


_SERVER = MappingProxyType({"cwd": WORKING_DIRECTORY, ANY: PROCESS})
ENVIRONMENT_RULE: Rule = _rules(
    skills=PROCESS,
    files=_every(_rules(src=PROCESS)),
    commands=LITERAL,
    git=_rules(source=PROCESS, url=PROCESS),
    mcpServers=_every(_SERVER),
    env=PROCESS,
)
_GRADERS = _every(_rules(config=LITERAL))
_GOLDEN = _rules(path=PROCESS, inline=LITERAL)
STIMULUS_RULE: Rule = _rules(
    prompt=LITERAL,
    turns=LITERAL,
    rubric=RUBRIC,
    environment=ENVIRONMENT_RULE,
    agent_environment=ENVIRONMENT_RULE,
    grading_environment=ENVIRONMENT_RULE,
    graders=_GRADERS,
    attachments=PROCESS,
    simulation=LITERAL,
    golden_patch=_GOLDEN,
    golden_trajectory=_GOLDEN,
    golden_command=LITERAL,
)
_ROWS = _rules(file=PROCESS, template=STIMULUS_RULE)
DEFAULTS_RULE: Rule = _rules(executor=_rules(config=PROCESS), judge_provider=PROCESS)
_SETTINGS = ("name", "version", "type", "artifacts", "scoring", "tags", "metadata")
SPEC_RULE: Rule = MappingProxyType(
    {
        **dict.fromkeys(_SETTINGS, SETTING),
        "description": LITERAL,
        "defaults": DEFAULTS_RULE,
        "config": DEFAULTS_RULE,
        "environment": ENVIRONMENT_RULE,
        "agent_environment": ENVIRONMENT_RULE,
        "grading_environment": ENVIRONMENT_RULE,
        "graders": _GRADERS,
        "stimuli": _every(STIMULUS_RULE),
        "stimuli_from": MappingProxyType({"file": PROCESS, "template": STIMULUS_RULE, ANY: _ROWS}),
        ANY: IGNORED,
    }
)


@dataclass(slots=True)
class Parameters:
    """What placeholders are filled with, and what was asked for.

    `from_environment` are the process variables used, `secrets` the given values whose names are those of secrets.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    mentioned: set[str] = field(default_factory=set)
    from_environment: dict[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.secrets = {name: value for name, value in self.values.items() if is_secret_name(name)}

    def value(self, hole: Hole, rule: str) -> tuple[str | None, bool]:
        """The text for a placeholder, or None, and whether it is a process variable."""
        if hole.name in self.values:
            return self.values[hole.name], False
        if rule in (PROCESS, WORKING_DIRECTORY) and hole.name in self.environ:
            return self.environ[hole.name], True
        return hole.default, False

    def redacted(self, text: str) -> str:
        """A text without secrets, and without the values of process variables that placeholders used."""
        hidden = {**self.from_environment, **self.secrets}
        for name, value in sorted(hidden.items(), key=lambda item: -len(item[1])):
            if is_secret_value(value):
                text = text.replace(value, f"<redacted:{name}>")
        return text


@dataclass(slots=True)
class Filler:
    """Fills a tree; subtrees without placeholders are shared with the original."""

    parameters: Parameters
    collector: Collector
    rows: bool = False
    """Inside a template: placeholders of rows stay."""
    variables: bool = False
    """Inside what changes a spec: variables of the eval stay."""

    def fill(self, node: Node, rule: Rule, place: Place = ROOT) -> Node:
        """A copy of the tree with its placeholders filled by the rule of each place."""
        if not node.holes_inside or rule == IGNORED:
            return node
        if isinstance(node, ScalarNode):
            return self._scalar(node, rule if isinstance(rule, str) else SETTING, place)
        if isinstance(node, SequenceNode):
            return self._sequence(node, rule, place)
        assert isinstance(node, MappingNode)
        return self._mapping(node, rule, place)

    def _sequence(self, node: SequenceNode, rule: Rule, place: Place) -> Node:
        inner = rule_below(rule, None)
        items = node.items
        if rule == RUBRIC:
            items = [item if isinstance(item, ScalarNode) else source_text(item) for item in items]
        filled = [self.fill(item, inner, place.item(index)) for index, item in enumerate(items)]
        copy = SequenceNode(node.source, node.line, node.column, filled)
        copy.span, copy.holes_inside = node.span, any(item.holes_inside for item in copy.items)
        return copy

    def _mapping(self, node: MappingNode, rule: Rule, place: Place) -> Node:
        entries = []
        for key, value in node.entries:
            inner = rule_below(rule, key.text)
            rows, self.rows = self.rows, self.rows or (key.text == "template" and inner is STIMULUS_RULE)
            entries.append(Entry(key, self.fill(value, inner, place.key(key.text))))
            self.rows = rows
        copy = MappingNode(node.source, node.line, node.column, entries)
        copy.span, copy.holes_inside = node.span, any(value.holes_inside for _, value in entries)
        return copy

    def _scalar(self, node: ScalarNode, rule: str, place: Place) -> ScalarNode:
        copy = ScalarNode(node.source, node.line, node.column, "", node.style, node.tag)
        copy.original = node.text if node.original is None else node.original
        pieces, written, end, kept = [], [], 0, []
        for hole in node.holes:
            before = node.text[end : hole.start]
            end = hole.end
            text, shown, stays = self._piece(node, hole, rule, copy, place)
            pieces += [before, text]
            written += [before, shown]
            if stays:
                start = sum(map(len, pieces)) - len(text)
                kept.append(hole._replace(start=start, end=start + len(text)))
        copy.text = "".join((*pieces, node.text[end:]))
        shown_text = "".join((*written, node.text[end:]))
        copy.written = shown_text if shown_text != copy.text else None
        copy.holes, copy.holes_inside = tuple(kept), bool(kept)
        if copy.text == copy.original and not copy.unresolved:
            copy.original = node.original
        return copy

    def _piece(self, node: ScalarNode, hole: Hole, rule: str, copy: ScalarNode, place: Place) -> tuple[str, str, bool]:
        """What stands for a placeholder, what records show for it, and whether it is still one."""
        source = node.text[hole.start : hole.end]
        if (self.rows and is_row(hole)) or (self.variables and is_variable(hole)):
            return source, source, True
        if "." in hole.name or (rule == WORKING_DIRECTORY and hole.name == "workspace"):
            return source, source, False
        self.parameters.mentioned.add(hole.name)
        value, from_environment = self.parameters.value(hole, rule)
        if value is None and rule in (LITERAL, RUBRIC):
            return source, source, False
        if hole.escaped:
            return source[1:], source[1:], False
        if value is None:
            copy.unresolved = True
            hint = f"pass --param {hole.name}=…"
            self.collector.add("unresolved-parameter", node, place, hint=hint, name=hole.name)
            return source, source, False
        if from_environment:
            self.parameters.from_environment[hole.name] = value
        return value, source if from_environment else value, False


def is_row(hole: Hole) -> bool:
    """Whether a placeholder is filled from a row."""
    return hole.name.startswith(_ROW) or (hole.name == _NUMBER and hole.default is None)


def is_variable(hole: Hole) -> bool:
    """Whether a placeholder is filled from the path of an eval."""
    return hole.name.startswith(_EVAL)


def rule_below(rule: Rule, key: str | None) -> Rule:
    """The rule for the value of a key; None is an item of a list."""
    if isinstance(rule, str):
        return rule
    if key is not None and key.startswith("x-") and key not in rule and ANY not in rule:
        return IGNORED
    found = rule.get(key if key is not None else ANY, rule.get(ANY, SETTING))
    assert isinstance(found, str | Mapping)
    return found


def mentioned_names(node: Node) -> Collection[str]:
    """Names of the parameters in a tree."""
    return {hole.name for scalar in scalars(node) for hole in scalar.holes if "." not in hole.name}


def source_text(node: Node) -> ScalarNode:
    """The text that YAML took for a collection, as a string."""
    assert isinstance(node, MappingNode | SequenceNode)
    whole, start, end = node.span or ("", 0, 0)
    text = whole[start:end].strip()
    scalar = ScalarNode(node.source, node.line, node.column, text, "|", SOURCE_TEXT)
    scalar.holes = find_holes(text)
    scalar.holes_inside = bool(scalar.holes)
    return scalar
