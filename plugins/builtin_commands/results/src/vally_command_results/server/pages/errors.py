"""Pages for what went wrong."""

from __future__ import annotations

from vally_command_results.server.pages.rendering import pages

_TITLES = {
    400: "This address cannot be read",
    403: "Not allowed",
    404: "Nothing here",
    405: "Not allowed",
    413: "Too large",
    500: "Something broke",
    503: "Busy",
}


def error_page(status: int, code: str, message: str) -> str:
    """A page with the status, code and message of the answer that the API would give."""
    title = _TITLES.get(status, "Error")
    values = {"title": title, "section": "", "status": status, "code": code, "message": message}
    return pages().render("error.html", values).decode()
