"""What is wrong with a question; API and pages answer with the same code and status."""

from __future__ import annotations


class QueryError(Exception):
    """An error with its code and HTTP status."""

    def __init__(self, code: str, status: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.message = message


def not_found(what: str) -> QueryError:
    """Nothing of that id, or no such part of it."""
    return QueryError("not_found", 404, what)


def invalid(parameter: str, problem: str) -> QueryError:
    """A parameter that cannot be used."""
    return QueryError("invalid_params", 400, f"{parameter}: {problem}")
