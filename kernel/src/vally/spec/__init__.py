"""The YAML files a user writes: reading with positions, checking, merging, and every diagnostic about them."""

from __future__ import annotations

from vally.spec.codes import DIAGNOSTIC_CODES as DIAGNOSTIC_CODES
from vally.spec.diagnostics import adjust as adjust
from vally.spec.diagnostics import format_diagnostic as format_diagnostic
from vally.spec.discovery import discover_evals as discover_evals
from vally.spec.discovery import expand_spec_words as expand_spec_words
from vally.spec.discovery import suite_files as suite_files
from vally.spec.experiments import LoadedExperiment as LoadedExperiment
from vally.spec.experiments import load_experiment_config as load_experiment_config
from vally.spec.experiments import read_experiment as read_experiment
from vally.spec.experiments import read_experiment_config as read_experiment_config
from vally.spec.experiments import resolve_experiment as resolve_experiment
from vally.spec.loader import LoadedSpec as LoadedSpec
from vally.spec.loader import load_eval_spec as load_eval_spec
from vally.spec.loader import read_eval_spec as read_eval_spec
from vally.spec.loader import read_foreign_spec as read_foreign_spec
from vally.spec.project import environment_params as environment_params
from vally.spec.project import find_project as find_project
from vally.spec.project import load_project as load_project
from vally.spec.project import read_project as read_project
from vally.spec.resolving import resolve_environment as resolve_environment
from vally.spec.resolving import resolve_stimulus as resolve_stimulus
from vally.spec.resolving import stimulus_prompts as stimulus_prompts
from vally.spec.skills import SkillFile as SkillFile
from vally.spec.skills import find_skills as find_skills
from vally.spec.skills import inspect_skill as inspect_skill
from vally.spec.skills import parse_skill as parse_skill
from vally.spec.tags import matches_filter as matches_filter
from vally.spec.validation import ValidationReport as ValidationReport
from vally.spec.validation import validate_eval_spec as validate_eval_spec
