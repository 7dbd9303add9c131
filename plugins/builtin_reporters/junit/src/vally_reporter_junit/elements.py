"""The elements of a JUnit file, with the attributes that vally adds, and their text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from junitparser import Attr, IntAttr, JUnitXml, Properties, Property, TestCase, TestSuite

# The library builds its elements with lxml where that is installed, so they are written with the same.
from junitparser.junitparser import Element, etree  # type: ignore[attr-defined]  # not in its list of names

from vally import fixed

INDENT = "  "
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """The text with U+FFFD for every character that XML 1.0 forbids."""
    return _FORBIDDEN.sub("\ufffd", text)


def seconds(milliseconds: int) -> str:
    """Seconds with three decimals."""
    return f"{milliseconds / 1000:.3f}"


def number(value: float) -> str:
    """A number with at most four decimals."""
    whole, point, decimals = fixed(value, 4).partition(".")
    return f"{whole}{point}{decimals.rstrip('0')}".removesuffix(".")


class Case(TestCase):
    """A trial."""

    file = Attr()
    line = IntAttr()
    time = Attr()


class Suite(TestSuite):
    """An eval x model."""

    time = Attr()


class Report(JUnitXml):
    """A run."""

    time = Attr()


class Outcome(Element):
    """`failure`, `error` or `skipped` with its attributes and text."""

    def __init__(self, tag: str, message: str, *, type_: str | None = None, text: str | None = None) -> None:
        super().__init__(tag)
        if type_ is not None:
            self._elem.set("type", xml_text(type_))
        self._elem.set("message", xml_text(message))
        if text:
            self._elem.text = text


def add(parent: Element, child: Element) -> None:
    """Append a child."""
    parent.append(child)  # type: ignore[no-untyped-call]  # the library is typed in part


def properties(values: Mapping[str, str]) -> Properties:
    """A `properties` element."""
    element = Properties()  # type: ignore[no-untyped-call]  # the library is typed in part
    for name, value in values.items():
        element.add_property(Property(xml_text(name), xml_text(value)))
    return element


def written(element: Element, level: int) -> str:
    """An element with its children, indented, on lines of its own."""
    etree.indent(element._elem, INDENT, level)
    text: str = etree.tostring(element._elem, encoding="unicode")
    # Texts and attributes hold no raw `>`, so this is the end of an empty element.
    return f"{INDENT * level}{text.rstrip()}\n".replace(" />", "/>")


def opened(element: Element, level: int) -> str:
    """The start tag of an element that has no children yet."""
    return written(element, level).replace("/>", ">")


def closed(element: Element, level: int) -> str:
    """Its end tag."""
    return f"{INDENT * level}</{element._elem.tag}>\n"
