"""What type checkers see of `vally_executor_copilot_sdk`: the same names as the table in `__init__.py`."""

from vally_executor_copilot_sdk.client import ClientSettings as ClientSettings
from vally_executor_copilot_sdk.client import RuntimeClient as RuntimeClient
from vally_executor_copilot_sdk.clients import check_login as check_login
from vally_executor_copilot_sdk.clients import standalone_settings as standalone_settings
from vally_executor_copilot_sdk.config import MOST_SESSIONS as MOST_SESSIONS
from vally_executor_copilot_sdk.environment import github_token as github_token
from vally_executor_copilot_sdk.failures import refusal_reason as refusal_reason
from vally_executor_copilot_sdk.mapping import COST_UNIT as COST_UNIT
from vally_executor_copilot_sdk.native import Native as Native
from vally_executor_copilot_sdk.native import live_event as live_event
from vally_executor_copilot_sdk.native import of_main_agent as of_main_agent
from vally_executor_copilot_sdk.native import well_formed as well_formed
from vally_executor_copilot_sdk.native import with_data as with_data
from vally_executor_copilot_sdk.permissions import Answer as Answer
from vally_executor_copilot_sdk.permissions import answering as answering
from vally_executor_copilot_sdk.permissions import is_inside as is_inside
from vally_executor_copilot_sdk.pool import ClientPool as ClientPool
from vally_executor_copilot_sdk.provider import endpoint as endpoint
from vally_executor_copilot_sdk.runtime import Places as Places
from vally_executor_copilot_sdk.runtime import find_runtime as find_runtime
from vally_executor_copilot_sdk.waiting import TurnWatch as TurnWatch
