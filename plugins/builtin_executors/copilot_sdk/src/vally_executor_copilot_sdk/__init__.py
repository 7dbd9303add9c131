"""Executor plugin: GitHub Copilot through its SDK; and what others that talk to Copilot may build on.

Others use the names of this package only, not those of its modules. Each is imported when it is first used.

| names | what they are for |
|---|---|
| `ClientPool`, `MOST_SESSIONS` | few processes for many sessions |
| `RuntimeClient`, `ClientSettings`, `standalone_settings` | one process of the runtime, and what it is made of |
| `Places`, `find_runtime` | where the runtime lies |
| `check_login`, `github_token`, `endpoint` | the user's login, or an endpoint in its place |
| `Answer`, `answering`, `is_inside` | answers to what the agent asks to be allowed |
| `Native`, `live_event`, `with_data`, `of_main_agent`, `well_formed` | events as the runtime tells them |
| `COST_UNIT` | the unit of its costs |
| `TurnWatch` | waiting for the end of a turn |
| `refusal_reason` | what the runtime says of an error |
"""

from __future__ import annotations

from vally import lazy_names

_NAMES = {
    "vally_executor_copilot_sdk.client": "ClientSettings RuntimeClient",
    "vally_executor_copilot_sdk.clients": "check_login standalone_settings",
    "vally_executor_copilot_sdk.config": "MOST_SESSIONS",
    "vally_executor_copilot_sdk.environment": "github_token",
    "vally_executor_copilot_sdk.failures": "refusal_reason",
    "vally_executor_copilot_sdk.mapping": "COST_UNIT",
    "vally_executor_copilot_sdk.native": "Native live_event of_main_agent well_formed with_data",
    "vally_executor_copilot_sdk.permissions": "Answer answering is_inside",
    "vally_executor_copilot_sdk.pool": "ClientPool",
    "vally_executor_copilot_sdk.provider": "endpoint",
    "vally_executor_copilot_sdk.runtime": "Places find_runtime",
    "vally_executor_copilot_sdk.waiting": "TurnWatch",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, globals(), _NAMES)
