"""Links of a Markdown text with their positions, parsed as CommonMark says."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_TARGETS = {"a": "href", "img": "src"}
# A parser of whole documents takes quadratic time for tags that never end; these two patterns do not.
_TAG = re.compile(
    r"""<!--(?:.*?-->|.*)|<(?P<name>a|img)(?=[\s/>])(?P<attributes>(?:[^<>"']|"[^"]{0,2000}+"|'[^']{0,2000}+')*+)>""",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"""(?<=[\s/"'])(?P<key>[^\s"'<>/=]++)\s*+=\s*+(?:"(?P<double>[^"]*+)"|'(?P<single>[^']*+)'|(?P<bare>[^\s"'=<>`]++))"""
)


@dataclass(frozen=True, slots=True)
class Link:
    """A target as written, without its title; line and column (in code points) are 1-based."""

    target: str
    line: int
    column: int | None


def links(text: str, *, first_line: int = 1) -> list[Link]:
    """Inline links and images, reference definitions, `<a href>` and `<img src>`, in the order of the text.

    Code and HTML comments have none. `first_line` is the number of the first line in its file.
    """
    env: dict[str, Any] = {}
    tokens = _parser().parse(text, env)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = [*_in_blocks(tokens, lines), *_definitions(env, lines)]
    ordered = sorted(found, key=lambda link: (link.line, link.column or 0))
    return [Link(link.target, link.line + first_line - 1, link.column) for link in ordered]


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import html_inline, image, link

    parser = MarkdownIt("commonmark")
    for name, rule in (("link", link), ("image", image), ("html_inline", html_inline)):
        parser.inline.ruler.at(name, _recording(rule))
    # Targets are wanted as written: what may follow is not the parser's business.
    for name, function in (("normalizeLink", _unchanged), ("validateLink", _anything)):
        setattr(parser, name, function)
    return parser


def _unchanged(url: str) -> str:
    return url


def _anything(_: str) -> bool:
    return True


def _recording(rule: Callable[[Any, bool], bool]) -> Callable[[Any, bool], bool]:
    """The same rule, whose tokens know the offset at which they start and whether a `)` ends them."""

    def recorded(state: Any, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        matched = rule(state, silent)
        if matched and not silent:
            for token in state.tokens[count:]:
                token.meta.setdefault("start", start)
                token.meta.setdefault("inline", state.src[state.pos - 1] == ")")
        return matched

    return recorded


def _in_blocks(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[Link]:
    for token in tokens:
        if token.map is None:
            continue
        if token.type == "inline":
            for child in token.children or []:
                yield from _in_inline(child, token, lines)
        elif token.type == "html_block":
            yield from _in_html(token.content, 0, token, lines)


def _in_inline(child: Token, block: Token, lines: Sequence[str]) -> Iterator[Link]:
    if child.type == "html_inline":
        yield from _in_html(child.content, child.meta.get("start", 0), block, lines)
    elif child.type in ("link_open", "image") and child.meta.get("inline"):
        target = child.attrGet("href" if child.type == "link_open" else "src")
        line, column = _position(block, child.meta["start"], lines)
        yield Link(str(target), line, column)


def _position(block: Token, offset: int, lines: Sequence[str]) -> tuple[int, int | None]:
    """The position of an offset in the content of a block, which lacks what stands before its lines."""
    assert block.map is not None
    before = block.content[:offset]
    number = block.map[0] + before.count("\n")
    start = before.rfind("\n") + 1
    shown = block.content[start:].split("\n", 1)[0]
    blanks = len(shown) - len(shown.lstrip())
    at = lines[number].rfind(shown.strip()) if number < len(lines) else -1
    return number + 1, None if at < 0 else at + max(offset - start - blanks, 0) + 1


def _in_html(text: str, start: int, block: Token, lines: Sequence[str]) -> Iterator[Link]:
    for tag in _TAG.finditer(text):
        wanted = _TARGETS.get((tag["name"] or "").lower())
        for attribute in _ATTRIBUTE.finditer(tag["attributes"] or "") if wanted else ():
            if attribute["key"].lower() == wanted:
                value = next(item for item in (*attribute.group("double", "single", "bare"), "") if item is not None)
                line, column = _position(block, start + tag.start(), lines)
                yield Link(html.unescape(value), line, column)
                break


def _definitions(env: dict[str, Any], lines: Sequence[str]) -> Iterator[Link]:
    for definition in (*env.get("references", {}).values(), *env.get("duplicate_refs", ())):
        number = definition["map"][0]
        line = lines[number] if number < len(lines) else ""
        yield Link(definition["href"], number + 1, len(line) - len(line.lstrip(" >")) + 1)
