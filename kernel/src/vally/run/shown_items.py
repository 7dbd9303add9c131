"""Items as reporters see them: the same trials, without secrets in what their spec says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vally.run.redaction import REDACTED, redact_environment_maps

if TYPE_CHECKING:
    from vally.model.evalspec import Environment, Stimulus
    from vally.run.redaction import Redactor
    from vally.run.trial import TrialItem


class ShownItems:
    """Redacts each stimulus once, however many trials it has."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._shown: dict[tuple[int, str], Stimulus] = {}

    def of(self, item: TrialItem) -> TrialItem:
        """The item with a stimulus that may be printed and written down."""
        key = (item.eval_index, item.stimulus.name)
        stimulus = self._shown.get(key)
        if stimulus is None:
            stimulus = self._shown[key] = self._redacted(item.stimulus)
        return replace(item, stimulus=stimulus)

    def _redacted(self, stimulus: Stimulus) -> Stimulus:
        text = self._redactor.text
        effective = stimulus.effective_environment
        return replace(
            stimulus,
            prompt=text(stimulus.prompt),
            turns=tuple(text(turn) for turn in stimulus.turns),
            environment=_without_values(stimulus.environment),
            agent_environment=_without_values(stimulus.agent_environment),
            grading_environment=_without_values(stimulus.grading_environment),
            effective_environment=None if effective is None else _without_values(effective),
            document=self._redactor.value(redact_environment_maps(stimulus.document)),
        )


def _without_values(environment: Environment) -> Environment:
    servers = {
        name: replace(server, env=dict.fromkeys(server.env, REDACTED), headers=dict.fromkeys(server.headers, REDACTED))
        for name, server in environment.mcp_servers.items()
    }
    return replace(environment, env=dict.fromkeys(environment.env, REDACTED), mcp_servers=servers)
