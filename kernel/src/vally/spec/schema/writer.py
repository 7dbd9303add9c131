"""What one JSON Schema is written with: its definitions, its plugins, and the forms that every part uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vally.host import PluginHost

Schema = dict[str, Any]
NULL: Mapping[str, Any] = {"type": "null"}
_NOTES = ("description", "default", "deprecated")
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_COLUMN = r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*"
_DEFAULT = r"(?:=[^}\r\n]*)?"
PLACEHOLDER: Schema = {
    "description": "a text with a placeholder such as ${NAME} or ${NAME=default}",
    "type": "string",
    "pattern": rf"\$\{{(?:{_NAME}|row\.{_COLUMN}|eval\.{_NAME}){_DEFAULT}\}}",
}
ROW_VALUE: Schema = {
    "description": "a placeholder that takes a whole value of a data row, such as ${row.tags}",
    "type": "string",
    "pattern": rf"^\$\{{row\.{_COLUMN}{_DEFAULT}\}}$",
}
# With these an additional type is not enough.
_CHOICES = ("allOf", "anyOf", "const", "enum", "not", "oneOf")
# String keywords that the text of a placeholder may break although its value does not.
_NARROW = ("const", "enum", "format", "maxLength", "pattern")


@dataclass(slots=True)
class Writer:
    """Collects definitions while a schema is written.

    With `templates` the document has templates of stimuli, in whose parts the values of a data row may stand for
    lists and mappings; `in_part` is true while such a part is written. `partial` is true in what is laid over something
    else, so that nothing is required.
    """

    host: PluginHost
    templates: bool = False
    in_part: bool = False
    partial: bool = False
    definitions: dict[str, Schema] = field(default_factory=dict)

    def define(self, name: str, make: Callable[[Writer], Schema]) -> Schema:
        """A reference to the definition of that name, made at first use; it may refer to itself."""
        name = f"partial-{name}" if self.partial else name
        if name not in self.definitions:
            self.definitions[name] = {}
            outside, self.in_part = self.in_part, True
            self.definitions[name] = make(self)
            self.in_part = outside
        return {"$ref": f"#/$defs/{name}"}

    def lay_over(self, make: Callable[[Writer], Schema]) -> Schema:
        """What `make` writes, with nothing required."""
        whole, self.partial = self.partial, True
        schema = make(self)
        self.partial = whole
        return schema

    def complete(self, make: Callable[[Writer], Schema]) -> Schema:
        """What `make` writes, with everything required that is."""
        partial, self.partial = self.partial, False
        schema = make(self)
        self.partial = partial
        return schema

    def scalar(self, schema: Mapping[str, Any]) -> Schema:
        """A scalar, or a text with a placeholder; free texts hold placeholders anyway."""
        if schema.get("type") == "string" and not any(key in schema for key in _NARROW):
            return dict(schema)
        return or_else(schema, self.complete(lambda writer: writer.define("placeholder", lambda _: dict(PLACEHOLDER))))

    def collection(self, schema: Mapping[str, Any]) -> Schema:
        """A list or mapping, or in a template the placeholder of a row that holds one."""
        if not (self.templates and self.in_part):
            return dict(schema)
        return or_else(schema, self.complete(lambda writer: writer.define("row-value", lambda _: dict(ROW_VALUE))))


def either(*schemas: Mapping[str, Any]) -> Schema:
    """Any of several schemas; alternatives without notes of their own are flattened, equal ones occur once."""
    parts: list[Schema] = []
    for schema in schemas:
        alternatives = schema["anyOf"] if set(schema) == {"anyOf"} else [dict(schema)]
        parts += [item for item in alternatives if item not in parts]
    if {} in parts:
        return {}
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def or_else(schema: Mapping[str, Any], other: Mapping[str, Any]) -> Schema:
    """A schema or another one; the notes of the first describe both."""
    notes = {key: schema[key] for key in _NOTES if key in schema}
    bare = {key: value for key, value in schema.items() if key not in notes}
    return {**either(bare, other), **notes}


def or_null(schema: Mapping[str, Any]) -> Schema:
    """The same, or null; null means that a key is absent."""
    kind = schema.get("type")
    if isinstance(kind, str | list) and not any(key in schema for key in _CHOICES):
        kinds = [kind] if isinstance(kind, str) else kind
        return {**schema, "type": [*kinds, "null"]}
    return or_else(schema, NULL)


def deprecated(schema: Mapping[str, Any], description: str = "") -> Schema:
    """The same as an older spelling."""
    note = {"description": description} if description else {}
    return {**schema, **note, "deprecated": True}


def has(*keys: str) -> Schema:
    """A condition: the mapping has these keys, and none of them is null."""
    return {"required": list(keys), "properties": {key: {"not": dict(NULL)} for key in keys}}


def exactly_one(*keys: str) -> Schema:
    """A condition: the mapping has one of these keys, and no other of them."""
    return {"oneOf": [has(key) for key in keys]}


def is_one_of(key: str, values: Iterable[object]) -> Schema:
    """A condition: the mapping has the key, with one of these values."""
    return {"required": [key], "properties": {key: {"enum": list(values)}}}


def require_all(schema: Mapping[str, Any], *conditions: Mapping[str, Any]) -> Schema:
    """A mapping that fulfils further conditions."""
    return {**schema, "allOf": [*schema.get("allOf", ()), *conditions]} if conditions else dict(schema)
