"""How temporary directories of runs are called, and how it is seen that their run lives.

Such a directory belongs to one run, which locks a file in it for as long as it lives. Of those in which nobody does,
backends remove the ones that are old enough not to be just made.
"""

from __future__ import annotations

SCRATCH_PREFIX = "vally-run-"
SCRATCH_LOCK = "lock"
