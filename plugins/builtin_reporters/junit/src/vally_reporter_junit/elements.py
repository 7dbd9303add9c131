"""The elements of a JUnit file, with the attributes that vally adds and numbers in its own form."""

from __future__ import annotations

import re

from junitparser import Attr, IntAttr, JUnitXml, Properties, Property, TestCase, TestSuite
from junitparser.junitparser import Element

from vally import es_number

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """The text with U+FFFD for every character that XML 1.0 forbids."""
    return _FORBIDDEN.sub("�", text)


def seconds(milliseconds: int) -> str:
    """Seconds with three decimals."""
    return f"{milliseconds / 1000:.3f}"


def number(value: float) -> str:
    """A number with at most four decimals."""
    return es_number(round(value, 4))


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
            self._elem.text = xml_text(text)


def add(parent: Element, child: Element) -> None:
    """Append a child."""
    parent.append(child)  # type: ignore[no-untyped-call]  # the library is typed in part


def document(report: Report) -> bytes:
    """The whole file."""
    text: bytes = report.tostring()  # type: ignore[no-untyped-call]  # the library is typed in part
    return text


def properties(values: dict[str, str]) -> Properties:
    """A `properties` element."""
    element = Properties()  # type: ignore[no-untyped-call]  # the library is typed in part
    for name, value in values.items():
        element.add_property(Property(xml_text(name), xml_text(value)))
    return element
