"""Every diagnostic code: its level and its message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from vally.model.evalspec import Level
from vally.text.display import sanitise

QUOTED_LENGTH = 80
# Texts made here or by a parser, not values quoted from a file.
_WHOLE = frozenset({"problem", "reason", "text", "where", "expected", "wanted", "file", "message", "pointers"})


@dataclass(frozen=True, slots=True)
class Code:
    """One code; `template` has `{name}` fields, `lint` is the level in `vally lint` when it differs."""

    level: Level
    template: str
    lint: Level | None = None

    def message(self, values: Mapping[str, object]) -> str:
        """Fill the template; quoted values lose control characters and are cut at 80 code points."""
        return self.template.format_map({key: _shown(key, value) for key, value in values.items()})


def _shown(key: str, value: object) -> str:
    text = str(value) if key in _WHOLE else cut(str(value))
    return sanitise(text) if not text.isprintable() else text


def cut(text: str) -> str:
    """At most 80 code points, the last of which is then `…`."""
    return text if len(text) <= QUOTED_LENGTH else f"{text[: QUOTED_LENGTH - 1]}…"


def _errors(**templates: str) -> dict[str, Code]:
    return {name.replace("_", "-"): Code("error", template) for name, template in templates.items()}


def _warnings(**templates: str) -> dict[str, Code]:
    return {name.replace("_", "-"): Code("warning", template) for name, template in templates.items()}


_YAML = {
    **_errors(
        file_not_found="cannot read {file}: {reason}",
        file_too_large="file has {size} bytes, at most {limit} are allowed",
        yaml_encoding="not valid UTF-8 at byte {offset}",
        yaml_syntax="YAML syntax error: {text}",
        yaml_limit="document is too deeply nested or too large after alias expansion",
        yaml_unsafe_tag="tag '{tag}' is not allowed",
        yaml_complex_key="mapping keys must be plain text",
        duplicate_key="duplicate key '{key}' (first at line {line})",
        empty_document="the file is empty",
        multiple_documents="only one YAML document is allowed",
    ),
    "more-diagnostics": Code("info", "{count} more diagnostics not shown"),
}

_STRUCTURE = {
    **_errors(
        invalid_type="{key} must be {wanted}, got {value}",
        invalid_value="{key}: {value} is not allowed; expected {expected}",
        missing_key="{where}{key} is required",
        unknown_key="unknown key '{key}' in {where}",
        unknown_stimulus_field="unknown stimulus field '{key}'",
        removed_key="'{key}' is no longer supported",
        config_and_defaults="eval spec: cannot specify both 'config' and 'defaults'",
        invalid_duration="{key}: '{value}' is not a duration (examples: 30s, 5m, 2m40s)",
        unknown_variable="unknown variable ${{{name}}}",
        unresolved_variable="${{{name}}} has no value for {file}",
        secret_in_spec="{key} must not hold a secret; name an environment variable instead",
    ),
    **_warnings(
        foreign_key="unknown key '{key}' is ignored",
        ignored_stimulus_field="stimulus field '{key}' has no effect",
        ignored_key="'{key}' has no effect",
        deprecated_key="'{old}' is deprecated, use '{new}'",
        deprecated_filename="{file} is deprecated, rename it to .vally.yaml",
        coerced_scalar='{value} is used as the text "{value}"; quote it',
        scalar_for_list="{key} should be a list",
        bare_duration="{key}: {value} has no unit and is read as seconds; write {value}s",
        unused_parameter="--param {name} is not used by any file",
    ),
    "unresolved-parameter": Code("error", "no value for ${{{name}}}", lint="warning"),
}

_STIMULI = {
    **_errors(
        no_stimuli="at least one stimulus is required",
        duplicate_stimulus_name="duplicate stimulus name '{name}' (first at line {line})",
        missing_prompt="prompt or turns is required",
        prompt_and_turns="prompt and turns exclude each other",
        invalid_constraint_value="constraints.{key}: {value} is not allowed; expected {expected}",
        attachment_not_found="attachment {file} does not exist",
        attachment_too_large="attachment {file} has {size} bytes, at most {limit} are allowed",
        duplicate_tool_override="tool override for '{tool}' with the same arguments appears twice",
        golden_conflict="golden_patch and golden_command exclude each other",
        golden_file_not_found="{key}.path: {file} does not exist",
        invalid_golden_input="{key}: {reason}",
        invalid_executor="defaults.executor must be a name or {{name, config}}",
        invalid_executor_config="executor '{name}': {reason}",
        unknown_column="no column '{column}' in {file}",
        missing_column_value="row {row} of {file} has no value for '{column}'",
        row_value_not_scalar="column '{column}' of row {row} is not a scalar",
        invalid_data_row="{file}:{line}: {reason}",
        empty_data="{file} yields no row",
        too_many_rows="{file} yields {count} rows, at most 10000 are allowed",
    ),
    **_warnings(
        similar_stimulus_name="stimulus names '{first}' and '{second}' differ only in case",
        deprecated_turn_mapping="write the turn as a plain string",
        rubric_item_not_string='rubric item is not a string; quote it (read as "{value}")',
        unknown_skill_in_constraint="'{name}' is not among the skills of this stimulus",
        artifacts_exclude_only="artifacts.exclude without include copies nothing",
        regression_without_baseline="regression eval without scoring.threshold or golden input",
    ),
    "nothing-under-test": Code("warning", "no skill is offered, so skill checks cannot pass", lint="info"),
}

_ENVIRONMENTS = {
    **_errors(
        unknown_environment="no environment named '{name}' in .vally.yaml",
        skill_not_found="{skill} {problem}",
        skill_name_collision="two skills are named '{name}': {first}, {second}",
        environment_file_missing_field="{where}{key} is required",
        environment_file_not_found="{where}: {file} does not exist",
        environment_file_bad_dest="{where}: dest '{dest}' must stay inside the workspace and outside .git",
        environment_file_escape="{file} links outside the staged directory",
        reserved_env_name="env name '{name}' is reserved",
        invalid_glob="'{pattern}' is not a valid pattern: {reason}",
    ),
    **_warnings(
        environment_file_exposes_spec="{file} contains this spec; the agent can read its graders",
        backslash_path="use '/' in '{path}'",
        mcp_type_missing="mcpServers.{name}: type is missing, read as '{type}'",
        legacy_path_base="'{path}' was found relative to the spec, not to .vally.yaml",
        absolute_path="'{path}' is absolute and works on one machine only",
    ),
    "git-source-not-found": Code("error", "{path} is not inside a git repository", lint="warning"),
}

_GRADERS = {
    **_errors(
        unknown_grader_type="unknown grader type '{type}'",
        invalid_grader_config="Invalid config for {type}: {problem}",
        duplicate_grader_name="grader name '{name}' is used twice (first at line {line})",
        invalid_scoring_weight_key="scoring.weights: no grader type or name '{key}'",
        scoring_weights_zero="scoring.weights: at least one weight must be positive",
    ),
    **_warnings(
        deprecated_grader_config="{type}: '{key}' is deprecated",
        suspicious_grader_config="{type}: {problem}",
        deprecated_grader_name="grader name '{name}' is not a slug of at most 60 of a-z, 0-9, '-'",
        no_graders="stimulus has no grader and will not be scored",
        duplicate_grader_type_in_stimulus="two '{type}' graders share one weight; name them",
        ambiguous_scoring_weight_key="'{key}' is both a grader type and a grader name",
        unused_scoring_weight="scoring.weights: no grader uses '{key}'",
        unlisted_grader_weight="'{type}' is not in scoring.weights and weighs 1",
        rubric_without_llm_judge="rubric is set but no grader reads it",
        prompt_without_rubric="no rubric; the default criteria are used",
        golden_patch_evidence_missing="evidence golden_patch, but the stimulus has no golden_patch",
    ),
    "git-history-exposed": Code("info", "later commits of the source are visible to the agent"),
    "suspicious-pattern": Code("info", "{text}"),
}

_PROJECT = {
    **_errors(
        suite_empty="suite '{name}' needs filter or evals",
        discovery_path_not_found="paths.evals: {file} does not exist",
        no_evals_matched="eval patterns matched zero files",
        plugin_load_failed="plugin '{name}': {reason}",
        experiment_variants_or_matrix="exactly one of variants and matrix is required",
        vary_required="vary is required with variants",
        vary_with_matrix="vary is derived from matrix and must be absent",
        invalid_vary_path="'{path}' is not a pointer below /defaults, /environment or /agent_environment",
        variant_count="{count} variants; at least 2 and at most 256 are allowed",
        invalid_variant_name="'{name}' cannot be used as a variant name",
        invalid_matrix_label="'{name}' cannot be used as an axis or label",
        matrix_unlabelled_value="matrix.{axis}: a list or mapping value needs a label",
        unknown_baseline="baseline '{name}' is not a variant",
        baseline_required="--compare needs a baseline",
        experiment_drift="variants '{first}' and '{second}' differ outside vary: {pointers}",
    ),
    **_warnings(
        pattern_matched_nothing="'{pattern}' matches nothing",
        too_many_evals="{count} eval files found, only the first {limit} are used",
        spec_named_twice="{file} is named twice and runs once",
        matrix_same_path="axes '{first}' and '{second}' both set {path}; '{second}' decides in every variant",
        vary_unused="no variant differs under '{path}'",
    ),
    "suite-matched-nothing": Code("error", "suite '{name}' matches no eval file", lint="warning"),
}

DIAGNOSTIC_CODES: Mapping[str, Code] = MappingProxyType(
    {**_YAML, **_STRUCTURE, **_STIMULI, **_ENVIRONMENTS, **_GRADERS, **_PROJECT}
)
