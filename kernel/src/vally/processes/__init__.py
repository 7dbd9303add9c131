"""Processes of trials: started in sessions of their own, known by marks they inherit, ended without leftovers."""

from __future__ import annotations

from vally.processes.communicate import communicate
from vally.processes.guardian import Guardian
from vally.processes.process import Process
from vally.processes.result import Completed, ProcessStartError
from vally.processes.runner import LocalProcessRunner
from vally.processes.strays import find_marked

__all__ = ["Completed", "Guardian", "LocalProcessRunner", "Process", "ProcessStartError", "communicate", "find_marked"]
