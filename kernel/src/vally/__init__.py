"""Evaluate AI agents: the kernel of vally. Every public name is imported when it is first used."""

from __future__ import annotations

from vally._version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAMES = {
    "vally.cli.directories": "existing_directory results_directory workspace_directory",
    "vally.cli.event_loop": "leave_threads_behind",
    "vally.cli.machine_output": "reserved_stdout write_machine_output",
    "vally.cli.resumption": "Resumption given_options",
    "vally.cli.run_choices": "RunChoices",
    "vally.cli.run_command": "RunCommand reporter_flags",
    "vally.cli.run_options": "run_options",
    "vally.cli.run_session": "RunSession",
    "vally.cli.selection": "SelectionWords select_stimuli",
    "vally.cli.spec_selection": "SpecSelection",
    "vally.cli.stored_runs": (
        "RunPart StoredRun find_run find_runs newest_first output_dirs run_id run_place started_at"
    ),
    "vally.cli.eval_json": "print_object",
    "vally.cli.name_patterns": "name_matcher",
    "vally.cli.trial_choice": "TrialChoice",
    "vally.cli.trial_completion": "complete_from_run",
    "vally.run.run_settings": "RunOutcome",
    "vally.run.plan": "EvalPlan Plan PlanEntry PlanOptions make_plan",
    "vally.run.preparation": "ReadyExecutor",
    "vally.run.regrading.recorded": "Places located recorded_trajectory",
    "vally.run.rejudging": "matching_entry rejudged unjudged with_results",
    "vally.run.report_stream": "reporting",
    "vally.run.run_output": "RunLayout RunOutput display_path",
    "vally.run.simulation.simulated_user": "simulated_user",
    "vally.run.simulation.tool_overrides": "mark_simulated wrap_servers",
    "vally.run.single": "EvalOptions arun_eval run_eval",
    "vally.cli.clean_names": "with_clean_names",
    "vally.cli.completion_shells": "completion_script",
    "vally.cli.context": "CliContext",
    "vally.cli.display": "is_terminal use_color",
    "vally.cli.judge_options": "judge_cache judge_effort judge_options",
    "vally.cli.messages": "print_diagnostics print_error print_line print_warning",
    "vally.cli.own_process": "cache_directory own_environment",
    "vally.cli.options": "KEY_VALUE SHARE display_options plugin_options plugin_options_for",
    "vally.cli.terminal": (
        "Style cells clock cut_to_cells elapsed inert_line name_line one_line pad plural printable report_block "
        "report_width short_clock terminal_width"
    ),
    "vally.cli.workflow": "append_step_summary workflow_command workflow_path",
    "vally.decorator": "grader",
    "vally.errors": (
        "BackendError ConfigInvalid ExecutorError GraderError JudgeError PluginError SpecError TrialSkipped "
        "UsageError VallyError"
    ),
    "vally.foreign": "ExportRequest ExportResult ForeignSpec ProviderContext",
    "vally.hookspecs": "hookimpl",
    "vally.host": "PluginHost PluginSources",
    "vally.model.calls": "ToolCall result_text tool_calls",
    "vally.model.config": "CamelConfig Config Pattern",
    "vally.model.evalspec": (
        "Artifacts Attachment Constraints DEFAULT_BACKEND DEFAULT_JUDGE_MODEL Defaults Diagnostic Environment EvalSpec "
        "ExecutorChoice GitSource "
        "GraderEntry McpServer Position Project ProviderConfig Related Scoring StagedFile Stimulus Suite"
    ),
    "vally.model.experiment": ("Axis AxisValue ExperimentConfig ResolvedExperiment ResolvedSpec Variant plan_digest"),
    "vally.model.fields": (
        "DurationText EnvironmentMap NegatedFlag NonEmpty OneOrMore SpecFile ToolPatterns WorkspaceDirectory "
        "WorkspaceGlob"
    ),
    "vally.model.jsonio": (
        "canonical_json content_hash parse_json parse_timestamp plain_value read_json record_line timestamp"
    ),
    "vally.model.merging": "merge_environments merge_variant_override",
    "vally.model.metrics": "compute_metrics settle_metrics",
    "vally.model.patterns": "pattern_values",
    "vally.model.provider_settings": "ProviderSettings",
    "vally.model.results": (
        "ErrorInfo EvalSummary GraderResult JudgeUsage MAIN_VARIANT NO_MODEL Phases RunSummary Totals TrialResult "
        "load_run_summary load_trial_result stimulus_name"
    ),
    "vally.model.trajectory": (
        "Cost Event Metrics ModelTokens RecordError TokenUsage Trajectory TurnDiff dump_record load_trajectory"
    ),
    "vally.model.turns": "attribute_turns partition_turns",
    "vally.model.views": "View narrow",
    "vally.processes": "Completed Guardian LocalProcessRunner ProcessStartError communicate",
    "vally.records": (
        "API_VERSION KINDS Backend BackendSpec Capabilities CommandSpec ComparingGrader EvalProvider "
        "EvalProviderSpec Executor ExecutorSpec Exporter ExporterSpec Grader GraderSpec Judge JudgeSpec Record "
        "Reporter ReporterOption ReporterSpec"
    ),
    "vally.run.agent": "run_agent",
    "vally.run.agent_limit": "AgentLimit",
    "vally.run.builder": "TrajectoryBuilder",
    "vally.run.calling": "described invoke",
    "vally.run.diffs": "recorded_diff recorded_turn_diff sidecar_path",
    "vally.run.endpoint_error": "EndpointError endpoint_answer without_secrets",
    "vally.run.racing": "first_result",
    "vally.run.environment": "agent_environment candidate_variables",
    "vally.run.eval_table": "eval_result eval_table run_verdict stimulus_stats",
    "vally.run.file_locks": "lock_file",
    "vally.run.figures": "eval_figures percent stimulus_figures verdict_count",
    "vally.run.grading": "GradingRequest agrade_trajectory grade_entries grade_trajectory",
    "vally.run.imports.atif": "import_atif",
    "vally.run.imports.atif_checks": "AtifError is_atif",
    "vally.run.imports.imported": "Imported prompts_of with_turns",
    "vally.run.imports.session": "import_session",
    "vally.run.inputs": (
        "CompareInput CompareResult ExecutorOptions GraderInput JudgeClient Process ProcessRunner "
        "SimulatedUser Skill StopSignal TurnComplete"
    ),
    "vally.run.judge_conversation": (
        "JudgeAnswer JudgeConversation SubmittedCall ask_judge judge_reminder submitted_call"
    ),
    "vally.run.judges": "JudgePool",
    "vally.run.judge_endpoint": "EndpointConversation EndpointJudge own_headers_client posted_json",
    "vally.run.judging": "CallTokens JudgeReply JudgeRequest ToolSchema",
    "vally.run.library": "stimulus_of",
    "vally.run.linting": "lint",
    "vally.run.lock": "RunLock is_being_written",
    "vally.run.mcp_watch": "McpWatch",
    "vally.run.offered_skills": "check_offered_skills",
    "vally.run.optional_parameters": "OptionalParameters",
    "vally.run.agent_network": (
        "AgentNetwork agent_provider known_servers network_refusal refuse_remote_servers refuse_unreachable_model"
    ),
    "vally.run.providers": "outgoing_headers provider_headers provider_secrets resolve_provider",
    "vally.run.read_root": "Matches ReadRoot UnreadableFile accessible_workspace resolve_read_root",
    "vally.run.redaction": "Redactor redact_patterns",
    "vally.run.repo_snapshot": "RepoFile RepoSnapshot",
    "vally.run.reporting": (
        "Diagnostics EvalComplete PlannedEval PlannedStimulus RunComplete RunOptions RunStart TrialDone "
        "TrialPhase TrialStart"
    ),
    "vally.run.atomic": "atomic_write",
    "vally.run.results_file": (
        "IndexEntry ReadProblem RecordLine ResultsIndex index_results problem_lines read_documents read_lines"
    ),
    "vally.run.run_records": "RunRecords",
    "vally.run.run_scratch": "SCRATCH_LOCK SCRATCH_PREFIX",
    "vally.run.scoring": (
        "aggregate_grade compute_multi_trial_metrics compute_skill_score compute_stimulus_score counted_score "
        "has_grader_error mean pass_at_k pass_at_k_naive pass_hat_k pass_to_the_k reaches resolve_grade_pass "
        "trial_score"
    ),
    "vally.run.segments": "SegmentNamer segment",
    "vally.run.statistics": (
        "clustered_mean mcnemar mean_interval paired_interval pooled_mean sign_test t_quantile wilson_interval"
    ),
    "vally.run.stored_trials": "StoredTrials TrialEntry read_trials",
    "vally.run.summary": "RunTally",
    "vally.run.trial": (
        "ExportedFiles GradeOutcome GradeRequest JudgeSettings RunContext Selection TrialItem TrialOptions "
        "TrialOutcome WorkspaceChoice"
    ),
    "vally.run.whole_records": "load_whole",
    "vally.spec": (
        "LoadedExperiment LoadedSpec SkillFile ValidationReport adjust discover_evals expand_spec_words find_project "
        "find_skills inspect_skill load_eval_spec load_experiment_config load_project parse_skill "
        "read_eval_spec read_experiment read_experiment_config read_foreign_spec read_project "
        "resolve_environment resolve_experiment resolve_stimulus stimulus_prompts suite_files "
        "validate_eval_spec"
    ),
    "vally.spec.codes": "DIAGNOSTIC_CODES",
    "vally.spec.masking": "hide_placeholders",
    "vally.spec.schema": "json_schema",
    "vally.run.verdict_words": "counted_evals is_ungraded run_word",
    "vally.run.verdicts": "EvalRules StimulusTally TrialFacts",
    "vally.text.addresses": "is_loopback",
    "vally.text.display": (
        "clip_middle cut_evidence cut_middle describe_grader_value join_capped one_line_evidence sanitise "
        "strip_controls"
    ),
    "vally.text.durations": "InvalidDuration format_duration parse_duration",
    "vally.text.globs": "InvalidGlob compile_glob escape_glob expand_glob leaves_root",
    "vally.text.glyphs": "can_encode fit_glyphs",
    "vally.text.literal": "contains_literal",
    "vally.text.markdown": ("markdown_cell markdown_fence markdown_head markdown_name markdown_row report_duration"),
    "vally.text.names": "name_key",
    "vally.text.numbers": "compact_json es_number fixed one_decimal signed two_decimals",
    "vally.text.regex": "InvalidRegex Regex RegexError RegexMatch RegexTimeout compile_regex",
    "vally.text.regex_facts": "matches_every_text matches_no_text",
    "vally.text.suggest": "did_you_mean near_matches",
}


def lazy_names(
    package: str, namespace: dict[str, object], names: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package whose names are imported when first used (PEP 562).

    `namespace` is what `globals()` of the package gives; `names` maps modules to the names they give it, blanks
    between. Each name is looked up once.
    """
    module_of = {name: module for module, listed in names.items() for name in listed.split()}

    def look_up(name: str) -> object:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        from importlib import import_module

        value = namespace[name] = getattr(import_module(module), name)
        return value

    def names_of() -> list[str]:
        return sorted({*namespace, *module_of})

    return list(module_of), look_up, names_of


_all, __getattr__, __dir__ = lazy_names(__name__, globals(), _NAMES)
__all__ = ["__version__", "lazy_names", *_all]
