"""What a page of HTML holds, as far as tests ask."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
LOADING = ("src", "href", "action", "data", "poster", "srcset", "formaction", "xlink:href")


class PageFacts(HTMLParser):
    """Links, ids, text and anything that would run, of one page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.addresses: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: list[str] = []
        self.inline: list[str] = []
        self.labels: set[str] = set()
        self.controls: list[str] = []
        self.unclosed: list[str] = []
        self.problems: list[str] = []
        self.words: list[str] = []
        self.shown: list[str] = []
        self._in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.tags.append(tag)
        if tag not in VOID:
            self.unclosed.append(tag)
        self.inline += [f"{tag} {key}" for key in given if key.startswith("on") or key == "style"]
        self.addresses += [given[key] for key in LOADING if key in given]
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        # What a form sends back must be the name itself; all else is for people.
        self.shown += [value for key, value in given.items() if key != "value"]
        if "id" in given:
            self.ids.append(given["id"])
        for key in ("aria-labelledby", "aria-describedby"):
            self.references += given.get(key, "").split()
        if tag == "label":
            self.labels.add(given.get("for", ""))
        if tag in ("select", "input") and given.get("type") != "hidden" and "aria-label" not in given:
            self.controls.append(given.get("id", ""))
        self._in_script = tag in ("script", "style")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.unclosed.pop()

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False
        if self.unclosed and self.unclosed[-1] == tag:
            self.unclosed.pop()
        else:
            self.problems.append(f"</{tag}> closes {self.unclosed[-1:]}")

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip():
            self.inline.append(f"text in a script or style: {data[:40]}")
        self.words.append(data)
        self.shown.append(data)

    @property
    def text(self) -> str:
        """All text."""
        return "".join(self.words)
