"""Where a cluster is, as far as that can be told without Ray."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from vally import BackendError
from vally_backend_ray.codes import UNAVAILABLE

NO_CLUSTER = "start one with 'ray start --head', or leave 'address' out to have one on this machine for the run"
GIVE_TOKEN = "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
OTHER_TOKEN = "RAY_AUTH_TOKEN, or the file of RAY_AUTH_TOKEN_PATH, must hold the token of its head node"
NOT_LET_IN = f"something answers there: if it is the head node of a cluster that asks for a token, {GIVE_TOKEN}"
ANSWER_S = 10.0


def shows_token(process_env: Mapping[str, str]) -> bool:
    """Whether Ray shows a token: it needs the mode, and ends at once without a token then."""
    return process_env.get("RAY_AUTH_MODE", "").lower() == "token"


def not_accepted(address: str, process_env: Mapping[str, str]) -> BackendError:
    """The error of a cluster that wants a token, or another one."""
    if shows_token(process_env):
        return BackendError(f"'{address}' does not accept the token", code=UNAVAILABLE, hints=(OTHER_TOKEN,))
    return BackendError(f"'{address}' asks for a token", code=UNAVAILABLE, hints=(GIVE_TOKEN,))


def check_answers(address: str) -> None:
    """Raise `BackendError` where nobody listens, which Ray itself takes minutes to find out. Blocks."""
    host, _, port = address.rpartition(":")
    if not host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"no cluster at '{address}': {reason}"
        raise BackendError(message, code=UNAVAILABLE, hints=(NO_CLUSTER,)) from error
