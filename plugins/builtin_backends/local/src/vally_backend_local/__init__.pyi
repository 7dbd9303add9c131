"""What type checkers see of `vally_backend_local`: the same names as the table in `__init__.py`."""

from vally_backend_local.backend import LocalBackend as LocalBackend
from vally_backend_local.config import LocalArgs as LocalArgs
from vally_backend_local.config import Size as Size
from vally_backend_local.config import parse_size as parse_size
from vally_backend_local.confining import GRADER_INPUT as GRADER_INPUT
from vally_backend_local.confining import home_places as home_places
from vally_backend_local.confining import host_paths as host_paths
from vally_backend_local.confining import own_installation as own_installation
from vally_backend_local.confining import project_places as project_places
from vally_backend_local.confining import run_places as run_places
from vally_backend_local.confining import server_places as server_places
from vally_backend_local.confining import shows_any as shows_any
from vally_backend_local.confining import withheld_variables as withheld_variables
from vally_backend_local.copying import remove_tree as remove_tree
from vally_backend_local.directories import TrialDirectories as TrialDirectories
from vally_backend_local.failures import SetupError as SetupError
from vally_backend_local.outcome import LocalOutcome as LocalOutcome
from vally_backend_local.preparing import Place as Place
from vally_backend_local.preparing import Runners as Runners
from vally_backend_local.preparing import keeps_home as keeps_home
from vally_backend_local.runner import TrialRunner as TrialRunner
from vally_backend_local.setup_commands import command_environment as command_environment
from vally_backend_local.shared import RunResources as RunResources
from vally_backend_local.shared import temporary_directory as temporary_directory
from vally_backend_local.trial import Trial as Trial
