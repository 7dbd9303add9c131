"""Evaluate AI agents: the kernel of vally. Every public name is imported when it is first used."""

from __future__ import annotations

from vally._version import __version__ as __version__

# Type checkers take this name for true; importing it from typing would cost more modules than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vally.cli.completion_shells import completion_script as completion_script
    from vally.cli.context import CliContext as CliContext
    from vally.cli.display import use_color as use_color
    from vally.cli.messages import print_diagnostics as print_diagnostics
    from vally.cli.messages import print_error as print_error
    from vally.cli.messages import print_warning as print_warning
    from vally.cli.options import KEY_VALUE as KEY_VALUE
    from vally.cli.options import display_options as display_options
    from vally.cli.options import plugin_options as plugin_options
    from vally.cli.options import plugin_options_for as plugin_options_for
    from vally.decorator import grader as grader
    from vally.errors import BackendError as BackendError
    from vally.errors import ConfigInvalid as ConfigInvalid
    from vally.errors import ExecutorError as ExecutorError
    from vally.errors import GraderError as GraderError
    from vally.errors import JudgeError as JudgeError
    from vally.errors import PluginError as PluginError
    from vally.errors import SpecError as SpecError
    from vally.errors import TrialSkipped as TrialSkipped
    from vally.errors import UsageError as UsageError
    from vally.errors import VallyError as VallyError
    from vally.hookspecs import hookimpl as hookimpl
    from vally.host import PluginHost as PluginHost
    from vally.host import PluginSources as PluginSources
    from vally.model.calls import ToolCall as ToolCall
    from vally.model.calls import result_text as result_text
    from vally.model.calls import tool_calls as tool_calls
    from vally.model.config import CamelConfig as CamelConfig
    from vally.model.config import Config as Config
    from vally.model.config import Pattern as Pattern
    from vally.model.evalspec import Artifacts as Artifacts
    from vally.model.evalspec import Attachment as Attachment
    from vally.model.evalspec import Constraints as Constraints
    from vally.model.evalspec import Defaults as Defaults
    from vally.model.evalspec import Diagnostic as Diagnostic
    from vally.model.evalspec import Environment as Environment
    from vally.model.evalspec import EvalSpec as EvalSpec
    from vally.model.evalspec import ExecutorChoice as ExecutorChoice
    from vally.model.evalspec import GitSource as GitSource
    from vally.model.evalspec import GraderEntry as GraderEntry
    from vally.model.evalspec import McpServer as McpServer
    from vally.model.evalspec import Position as Position
    from vally.model.evalspec import Project as Project
    from vally.model.evalspec import ProviderConfig as ProviderConfig
    from vally.model.evalspec import Related as Related
    from vally.model.evalspec import Scoring as Scoring
    from vally.model.evalspec import StagedFile as StagedFile
    from vally.model.evalspec import Stimulus as Stimulus
    from vally.model.evalspec import Suite as Suite
    from vally.model.experiment import Axis as Axis
    from vally.model.experiment import AxisValue as AxisValue
    from vally.model.experiment import ExperimentConfig as ExperimentConfig
    from vally.model.experiment import ResolvedExperiment as ResolvedExperiment
    from vally.model.experiment import ResolvedSpec as ResolvedSpec
    from vally.model.experiment import Variant as Variant
    from vally.model.experiment import plan_digest as plan_digest
    from vally.model.fields import DurationText as DurationText
    from vally.model.fields import EnvironmentMap as EnvironmentMap
    from vally.model.fields import NegatedFlag as NegatedFlag
    from vally.model.fields import NonEmpty as NonEmpty
    from vally.model.fields import OneOrMore as OneOrMore
    from vally.model.fields import SpecFile as SpecFile
    from vally.model.fields import ToolPatterns as ToolPatterns
    from vally.model.fields import WorkspaceDirectory as WorkspaceDirectory
    from vally.model.fields import WorkspaceGlob as WorkspaceGlob
    from vally.model.jsonio import canonical_json as canonical_json
    from vally.model.jsonio import content_hash as content_hash
    from vally.model.jsonio import parse_timestamp as parse_timestamp
    from vally.model.jsonio import record_line as record_line
    from vally.model.jsonio import timestamp as timestamp
    from vally.model.merging import merge_environments as merge_environments
    from vally.model.merging import merge_variant_override as merge_variant_override
    from vally.model.metrics import compute_metrics as compute_metrics
    from vally.model.metrics import settle_metrics as settle_metrics
    from vally.model.patterns import pattern_values as pattern_values
    from vally.model.results import MAIN_VARIANT as MAIN_VARIANT
    from vally.model.results import NO_MODEL as NO_MODEL
    from vally.model.results import ErrorInfo as ErrorInfo
    from vally.model.results import EvalSummary as EvalSummary
    from vally.model.results import GraderResult as GraderResult
    from vally.model.results import JudgeUsage as JudgeUsage
    from vally.model.results import Phases as Phases
    from vally.model.results import RunSummary as RunSummary
    from vally.model.results import Totals as Totals
    from vally.model.results import TrialResult as TrialResult
    from vally.model.results import load_trial_result as load_trial_result
    from vally.model.trajectory import Cost as Cost
    from vally.model.trajectory import Event as Event
    from vally.model.trajectory import Metrics as Metrics
    from vally.model.trajectory import ModelTokens as ModelTokens
    from vally.model.trajectory import RecordError as RecordError
    from vally.model.trajectory import TokenUsage as TokenUsage
    from vally.model.trajectory import Trajectory as Trajectory
    from vally.model.trajectory import TurnDiff as TurnDiff
    from vally.model.trajectory import dump_record as dump_record
    from vally.model.trajectory import load_trajectory as load_trajectory
    from vally.model.turns import attribute_turns as attribute_turns
    from vally.model.turns import partition_turns as partition_turns
    from vally.model.views import View as View
    from vally.model.views import narrow as narrow
    from vally.processes import Guardian as Guardian
    from vally.processes import LocalProcessRunner as LocalProcessRunner
    from vally.processes import ProcessStartError as ProcessStartError
    from vally.processes import communicate as communicate
    from vally.records import API_VERSION as API_VERSION
    from vally.records import KINDS as KINDS
    from vally.records import Backend as Backend
    from vally.records import BackendSpec as BackendSpec
    from vally.records import Capabilities as Capabilities
    from vally.records import CommandSpec as CommandSpec
    from vally.records import ComparingGrader as ComparingGrader
    from vally.records import EvalProvider as EvalProvider
    from vally.records import EvalProviderSpec as EvalProviderSpec
    from vally.records import Executor as Executor
    from vally.records import ExecutorSpec as ExecutorSpec
    from vally.records import Exporter as Exporter
    from vally.records import ExporterSpec as ExporterSpec
    from vally.records import ExportRequest as ExportRequest
    from vally.records import ExportResult as ExportResult
    from vally.records import ForeignSpec as ForeignSpec
    from vally.records import Grader as Grader
    from vally.records import GraderSpec as GraderSpec
    from vally.records import Judge as Judge
    from vally.records import JudgeSpec as JudgeSpec
    from vally.records import ProviderContext as ProviderContext
    from vally.records import Record as Record
    from vally.records import Reporter as Reporter
    from vally.records import ReporterSpec as ReporterSpec
    from vally.run.agent import run_agent as run_agent
    from vally.run.atomic import atomic_write as atomic_write
    from vally.run.builder import TrajectoryBuilder as TrajectoryBuilder
    from vally.run.calling import invoke as invoke
    from vally.run.environment import agent_environment as agent_environment
    from vally.run.grading import GradingRequest as GradingRequest
    from vally.run.grading import agrade_trajectory as agrade_trajectory
    from vally.run.grading import grade_entries as grade_entries
    from vally.run.grading import grade_trajectory as grade_trajectory
    from vally.run.inputs import CompareInput as CompareInput
    from vally.run.inputs import CompareResult as CompareResult
    from vally.run.inputs import Completed as Completed
    from vally.run.inputs import ExecutorOptions as ExecutorOptions
    from vally.run.inputs import GraderInput as GraderInput
    from vally.run.inputs import JudgeClient as JudgeClient
    from vally.run.inputs import Process as Process
    from vally.run.inputs import ProcessRunner as ProcessRunner
    from vally.run.inputs import SimulatedUser as SimulatedUser
    from vally.run.inputs import Skill as Skill
    from vally.run.inputs import StopSignal as StopSignal
    from vally.run.inputs import TurnComplete as TurnComplete
    from vally.run.judge_conversation import EndpointError as EndpointError
    from vally.run.judge_conversation import JudgeAnswer as JudgeAnswer
    from vally.run.judge_conversation import JudgeConversation as JudgeConversation
    from vally.run.judge_conversation import SubmittedCall as SubmittedCall
    from vally.run.judge_conversation import ask_judge as ask_judge
    from vally.run.judge_conversation import judge_reminder as judge_reminder
    from vally.run.judge_conversation import submitted_call as submitted_call
    from vally.run.judging import CallTokens as CallTokens
    from vally.run.judging import JudgeReply as JudgeReply
    from vally.run.judging import JudgeRequest as JudgeRequest
    from vally.run.judging import ToolSchema as ToolSchema
    from vally.run.optional_parameters import OptionalParameters as OptionalParameters
    from vally.run.providers import outgoing_headers as outgoing_headers
    from vally.run.providers import provider_secrets as provider_secrets
    from vally.run.providers import resolve_provider as resolve_provider
    from vally.run.read_root import Matches as Matches
    from vally.run.read_root import ReadRoot as ReadRoot
    from vally.run.read_root import UnreadableFile as UnreadableFile
    from vally.run.read_root import accessible_workspace as accessible_workspace
    from vally.run.read_root import resolve_read_root as resolve_read_root
    from vally.run.redaction import Redactor as Redactor
    from vally.run.redaction import redact_patterns as redact_patterns
    from vally.run.repo_snapshot import RepoFile as RepoFile
    from vally.run.repo_snapshot import RepoSnapshot as RepoSnapshot
    from vally.run.reporting import Diagnostics as Diagnostics
    from vally.run.reporting import EvalComplete as EvalComplete
    from vally.run.reporting import PlannedEval as PlannedEval
    from vally.run.reporting import PlannedStimulus as PlannedStimulus
    from vally.run.reporting import RunComplete as RunComplete
    from vally.run.reporting import RunOptions as RunOptions
    from vally.run.reporting import RunStart as RunStart
    from vally.run.reporting import TrialDone as TrialDone
    from vally.run.reporting import TrialPhase as TrialPhase
    from vally.run.reporting import TrialStart as TrialStart
    from vally.run.results_file import index_results as index_results
    from vally.run.results_file import read_documents as read_documents
    from vally.run.run_records import RunRecords as RunRecords
    from vally.run.scoring import aggregate_grade as aggregate_grade
    from vally.run.scoring import compute_multi_trial_metrics as compute_multi_trial_metrics
    from vally.run.scoring import compute_skill_score as compute_skill_score
    from vally.run.scoring import compute_stimulus_score as compute_stimulus_score
    from vally.run.scoring import counted_score as counted_score
    from vally.run.scoring import has_grader_error as has_grader_error
    from vally.run.scoring import mean as mean
    from vally.run.scoring import pass_at_k as pass_at_k
    from vally.run.scoring import pass_at_k_naive as pass_at_k_naive
    from vally.run.scoring import pass_hat_k as pass_hat_k
    from vally.run.scoring import pass_to_the_k as pass_to_the_k
    from vally.run.scoring import reaches as reaches
    from vally.run.scoring import resolve_grade_pass as resolve_grade_pass
    from vally.run.scoring import trial_score as trial_score
    from vally.run.segments import segment as segment
    from vally.run.statistics import clustered_mean as clustered_mean
    from vally.run.statistics import mcnemar as mcnemar
    from vally.run.statistics import mean_interval as mean_interval
    from vally.run.statistics import paired_interval as paired_interval
    from vally.run.statistics import pooled_mean as pooled_mean
    from vally.run.statistics import sign_test as sign_test
    from vally.run.statistics import t_quantile as t_quantile
    from vally.run.statistics import wilson_interval as wilson_interval
    from vally.run.trial import ExportedFiles as ExportedFiles
    from vally.run.trial import GradeOutcome as GradeOutcome
    from vally.run.trial import GradeRequest as GradeRequest
    from vally.run.trial import JudgeSettings as JudgeSettings
    from vally.run.trial import RunContext as RunContext
    from vally.run.trial import Selection as Selection
    from vally.run.trial import TrialItem as TrialItem
    from vally.run.trial import TrialOptions as TrialOptions
    from vally.run.trial import TrialOutcome as TrialOutcome
    from vally.run.trial import WorkspaceChoice as WorkspaceChoice
    from vally.run.verdicts import EvalRules as EvalRules
    from vally.run.verdicts import StimulusTally as StimulusTally
    from vally.run.verdicts import TrialFacts as TrialFacts
    from vally.spec import LoadedExperiment as LoadedExperiment
    from vally.spec import LoadedSpec as LoadedSpec
    from vally.spec import SkillFile as SkillFile
    from vally.spec import adjust as adjust
    from vally.spec import discover_evals as discover_evals
    from vally.spec import expand_spec_words as expand_spec_words
    from vally.spec import find_project as find_project
    from vally.spec import find_skills as find_skills
    from vally.spec import inspect_skill as inspect_skill
    from vally.spec import load_eval_spec as load_eval_spec
    from vally.spec import load_experiment_config as load_experiment_config
    from vally.spec import load_project as load_project
    from vally.spec import parse_skill as parse_skill
    from vally.spec import read_eval_spec as read_eval_spec
    from vally.spec import read_experiment as read_experiment
    from vally.spec import read_experiment_config as read_experiment_config
    from vally.spec import read_foreign_spec as read_foreign_spec
    from vally.spec import read_project as read_project
    from vally.spec import resolve_environment as resolve_environment
    from vally.spec import resolve_experiment as resolve_experiment
    from vally.spec import resolve_stimulus as resolve_stimulus
    from vally.spec import stimulus_prompts as stimulus_prompts
    from vally.spec import suite_files as suite_files
    from vally.spec import validate_eval_spec as validate_eval_spec
    from vally.spec.codes import DIAGNOSTIC_CODES as DIAGNOSTIC_CODES
    from vally.spec.schema import json_schema as json_schema
    from vally.text.display import clip_middle as clip_middle
    from vally.text.display import cut_evidence as cut_evidence
    from vally.text.display import describe_grader_value as describe_grader_value
    from vally.text.display import join_capped as join_capped
    from vally.text.display import one_line_evidence as one_line_evidence
    from vally.text.display import sanitise as sanitise
    from vally.text.display import strip_controls as strip_controls
    from vally.text.durations import InvalidDuration as InvalidDuration
    from vally.text.durations import format_duration as format_duration
    from vally.text.durations import parse_duration as parse_duration
    from vally.text.globs import InvalidGlob as InvalidGlob
    from vally.text.globs import compile_glob as compile_glob
    from vally.text.globs import escape_glob as escape_glob
    from vally.text.globs import expand_glob as expand_glob
    from vally.text.glyphs import can_encode as can_encode
    from vally.text.glyphs import fit_glyphs as fit_glyphs
    from vally.text.literal import contains_literal as contains_literal
    from vally.text.numbers import compact_json as compact_json
    from vally.text.numbers import es_number as es_number
    from vally.text.numbers import fixed as fixed
    from vally.text.numbers import one_decimal as one_decimal
    from vally.text.numbers import two_decimals as two_decimals
    from vally.text.regex import InvalidRegex as InvalidRegex
    from vally.text.regex import Regex as Regex
    from vally.text.regex import RegexError as RegexError
    from vally.text.regex import RegexMatch as RegexMatch
    from vally.text.regex import RegexTimeout as RegexTimeout
    from vally.text.regex import compile_regex as compile_regex
    from vally.text.regex_facts import matches_every_text as matches_every_text
    from vally.text.regex_facts import matches_no_text as matches_no_text
    from vally.text.suggest import did_you_mean as did_you_mean
    from vally.text.suggest import near_matches as near_matches

_NAMES = {
    "vally.cli.completion_shells": "completion_script",
    "vally.cli.context": "CliContext",
    "vally.cli.display": "use_color",
    "vally.cli.messages": "print_diagnostics print_error print_warning",
    "vally.cli.options": "KEY_VALUE display_options plugin_options plugin_options_for",
    "vally.decorator": "grader",
    "vally.errors": (
        "BackendError ConfigInvalid ExecutorError GraderError JudgeError PluginError SpecError TrialSkipped "
        "UsageError VallyError"
    ),
    "vally.hookspecs": "hookimpl",
    "vally.host": "PluginHost PluginSources",
    "vally.model.calls": "ToolCall result_text tool_calls",
    "vally.model.config": "CamelConfig Config Pattern",
    "vally.model.evalspec": (
        "Artifacts Attachment Constraints Defaults Diagnostic Environment EvalSpec ExecutorChoice GitSource "
        "GraderEntry McpServer Position Project ProviderConfig Related Scoring StagedFile Stimulus Suite"
    ),
    "vally.model.experiment": (
        "Axis AxisValue ExperimentConfig ResolvedExperiment ResolvedSpec Variant plan_digest"
    ),
    "vally.model.fields": (
        "DurationText EnvironmentMap NegatedFlag NonEmpty OneOrMore SpecFile ToolPatterns WorkspaceDirectory "
        "WorkspaceGlob"
    ),
    "vally.model.jsonio": "canonical_json content_hash parse_timestamp record_line timestamp",
    "vally.model.merging": "merge_environments merge_variant_override",
    "vally.model.metrics": "compute_metrics settle_metrics",
    "vally.model.patterns": "pattern_values",
    "vally.model.results": (
        "MAIN_VARIANT NO_MODEL ErrorInfo EvalSummary GraderResult JudgeUsage Phases RunSummary Totals "
        "TrialResult load_trial_result"
    ),
    "vally.model.trajectory": (
        "Cost Event Metrics ModelTokens RecordError TokenUsage Trajectory TurnDiff dump_record load_trajectory"
    ),
    "vally.model.turns": "attribute_turns partition_turns",
    "vally.model.views": "View narrow",
    "vally.processes": "Guardian LocalProcessRunner ProcessStartError communicate",
    "vally.records": (
        "API_VERSION KINDS Backend BackendSpec Capabilities CommandSpec ComparingGrader EvalProvider "
        "EvalProviderSpec Executor ExecutorSpec ExportRequest ExportResult Exporter ExporterSpec ForeignSpec "
        "Grader GraderSpec Judge JudgeSpec ProviderContext Record Reporter ReporterSpec"
    ),
    "vally.run.agent": "run_agent",
    "vally.run.builder": "TrajectoryBuilder",
    "vally.run.calling": "invoke",
    "vally.run.environment": "agent_environment",
    "vally.run.grading": "GradingRequest agrade_trajectory grade_entries grade_trajectory",
    "vally.run.inputs": (
        "CompareInput CompareResult Completed ExecutorOptions GraderInput JudgeClient Process ProcessRunner "
        "SimulatedUser Skill StopSignal TurnComplete"
    ),
    "vally.run.judge_conversation": (
        "EndpointError JudgeAnswer JudgeConversation SubmittedCall ask_judge judge_reminder submitted_call"
    ),
    "vally.run.judging": "CallTokens JudgeReply JudgeRequest ToolSchema",
    "vally.run.optional_parameters": "OptionalParameters",
    "vally.run.providers": "outgoing_headers provider_secrets resolve_provider",
    "vally.run.read_root": "Matches ReadRoot UnreadableFile accessible_workspace resolve_read_root",
    "vally.run.redaction": "Redactor redact_patterns",
    "vally.run.repo_snapshot": "RepoFile RepoSnapshot",
    "vally.run.reporting": (
        "Diagnostics EvalComplete PlannedEval PlannedStimulus RunComplete RunOptions RunStart TrialDone "
        "TrialPhase TrialStart"
    ),
    "vally.run.atomic": "atomic_write",
    "vally.run.results_file": "index_results read_documents",
    "vally.run.run_records": "RunRecords",
    "vally.run.scoring": (
        "aggregate_grade compute_multi_trial_metrics compute_skill_score compute_stimulus_score counted_score "
        "has_grader_error mean pass_at_k pass_at_k_naive pass_hat_k pass_to_the_k reaches resolve_grade_pass "
        "trial_score"
    ),
    "vally.run.segments": "segment",
    "vally.run.statistics": (
        "clustered_mean mcnemar mean_interval paired_interval pooled_mean sign_test t_quantile wilson_interval"
    ),
    "vally.run.trial": (
        "ExportedFiles GradeOutcome GradeRequest JudgeSettings RunContext Selection TrialItem TrialOptions "
        "TrialOutcome WorkspaceChoice"
    ),
    "vally.spec": (
        "LoadedExperiment LoadedSpec SkillFile adjust discover_evals expand_spec_words find_project "
        "find_skills inspect_skill load_eval_spec load_experiment_config load_project parse_skill "
        "read_eval_spec read_experiment read_experiment_config read_foreign_spec read_project "
        "resolve_environment resolve_experiment resolve_stimulus stimulus_prompts suite_files "
        "validate_eval_spec"
    ),
    "vally.spec.codes": "DIAGNOSTIC_CODES",
    "vally.spec.schema": "json_schema",
    "vally.run.verdicts": "EvalRules StimulusTally TrialFacts",
    "vally.text.display": (
        "clip_middle cut_evidence describe_grader_value join_capped one_line_evidence sanitise strip_controls"
    ),
    "vally.text.durations": "InvalidDuration format_duration parse_duration",
    "vally.text.globs": "InvalidGlob compile_glob escape_glob expand_glob",
    "vally.text.glyphs": "can_encode fit_glyphs",
    "vally.text.literal": "contains_literal",
    "vally.text.numbers": "compact_json es_number fixed one_decimal two_decimals",
    "vally.text.regex": "InvalidRegex Regex RegexError RegexMatch RegexTimeout compile_regex",
    "vally.text.regex_facts": "matches_every_text matches_no_text",
    "vally.text.suggest": "did_you_mean near_matches",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = ["__version__", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'vally' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
