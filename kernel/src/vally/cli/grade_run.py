"""One invocation of `vally grade`: inputs, specs, the re-grading, and the right exit code."""

from __future__ import annotations

import sys
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from vally.cli.directories import directory
from vally.cli.display import is_terminal
from vally.cli.machine_output import reserved_stdout
from vally.cli.messages import error_line, print_error, print_hints, print_warning, say
from vally.cli.selection import SelectionWords, select_stimuli
from vally.cli.spec_selection import SpecSelection
from vally.cli.terminal import plural
from vally.errors import UsageError, VallyError

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.model.evalspec import EvalSpec
    from vally.run.regrading.matching import Match, Matcher
    from vally.run.regrading.recorded import Places
    from vally.run.regrading.source import Document, Source
    from vally.run.regrading.work import Assigned

_SHOWN_WARNINGS = 20
_SHOWN_PROBLEMS = 20


class GradeRun:
    """Carries an invocation from its options to its exit code."""

    def __init__(self, context: CliContext, inputs: Sequence[str], options: Mapping[str, Any]) -> None:
        self._context = context
        self._inputs = inputs
        self._options = options
        self._run_id = options["run_id"] or str(uuid.uuid4())
        self._failed = False
        self._warned: Counter[str] = Counter()

    def execute(self) -> int:
        """Do everything; returns the exit code. Raises `VallyError` for what stops it before anything is graded."""
        if not self._inputs and is_terminal(sys.stdin):
            raise UsageError(
                "nothing to grade: name an INPUT, or pipe records to standard input",
                hints=["example: vally grade -e eval.yaml vally-results/<run>/results.jsonl"],
            )
        with reserved_stdout(self._options["output"] != "text"):
            sources: list[Source] = []
            try:
                return self._execute(sources)
            finally:
                for source in sources:
                    source.close()

    def _execute(self, sources: list[Source]) -> int:
        from vally.run.regrading.matching import Matcher

        selection = SpecSelection(
            self._context, SelectionWords(specs=self._options["specs"]), params=dict(self._options["params"])
        )
        project = selection.find_project()
        host = selection.open_host()
        specs = None if host is None else selection.load(host)
        if host is None or specs is None:
            return 1
        for warning in host.take_warnings():
            print_warning(warning)
        documents = self._documents(sources)
        matcher = Matcher(specs)
        assigned = self._assigned(documents, matcher, self._chosen(specs))
        self._print_summed_warnings()
        if not assigned:
            return self._nothing(documents, specs)
        places = self._places([item.document for item in assigned])
        from vally.cli.grade_session import GradeSession

        session = GradeSession(
            self._context,
            self._options,
            run_id=self._run_id,
            project=project,
            host=host,
            specs=specs,
            environment_values=selection.environment_values,
            places=places,
            warn=self._warn,
            fail=self._fail,
        )
        return session.run(assigned, lambda: self._failed)

    def _documents(self, sources: list[Source]) -> list[Document]:
        from vally.run.regrading.source import open_source, read_source

        documents: list[Document] = []
        for word in self._inputs or ("-",):
            try:
                opened = [open_source(name, self._context.cwd, _stdin()) for name in self._files(word)]
            except VallyError as error:
                self._failed = True
                print_error(error)
                continue
            sources += opened
            for source in opened:
                found = read_source(source)
                documents += found
                self._report_problems(source, session=any(item.format == "session" for item in found))
        if self._failed and not documents:
            raise VallyError("no input can be read", code="nothing-to-grade")
        return documents

    def _files(self, word: str) -> list[str]:
        """The words of the files that an input stands for: those of all variants of an experiment."""
        from vally.cli.stored_runs import run_at, run_place

        if word == "-" or word.endswith((".json", ".jsonl")):
            return [word]
        place = run_place(word, self._context, where="INPUT")
        path = self._context.cwd / place
        run = run_at(path) if path.is_dir() else None
        if run is None or not run.is_experiment:
            return [place]
        return [f"{place}/{part.results.relative_to(path).as_posix()}" for part in run.parts]

    def _report_problems(self, source: Source, *, session: bool) -> None:
        for problem in source.problems[:_SHOWN_PROBLEMS]:
            where = f"{source.label}:{problem.line}"
            if problem.code == "torn-record" or session:
                say(error_line(problem.message, where=where, code=problem.code, level="warning"))
            else:
                self._fail(where, problem.message, problem.code)
        # A file of another kind has as many problems as lines.
        more = source.problems[_SHOWN_PROBLEMS:]
        if more:
            self._failed |= not session
            level = "warning" if session else "error"
            text = f"{plural(len(more), 'more line')} cannot be read"
            say(error_line(text, where=f"{source.label}:{more[0].line}", code=more[0].code, level=level))

    def _places(self, documents: Sequence[Document]) -> Places:
        from vally.run.regrading.recorded import Places

        cwd, options = self._context.cwd, self._options
        diff = options["diff_file"]
        if diff is not None and not (cwd / diff).is_file():
            raise VallyError(f"no file '{diff}'", where="--diff-file")
        places = Places(
            run_dir=directory(cwd, options["run_dir"], "--run-dir"),
            workspace=directory(cwd, options["workspace"], "--workspace"),
            artifact_dir=directory(cwd, options["artifact_dir"], "--artifact-dir"),
            diff_file=None if diff is None else (cwd / diff).absolute(),
        )
        single = {"--diff-file": places.diff_file, "--artifact-dir": places.artifact_dir}
        if any(document.format == "record" for document in documents):
            single["--workspace"] = places.workspace
        for option, value in single.items():
            if value is not None and len(documents) > 1:
                raise VallyError(
                    f"is for a single trajectory, {len(documents)} are to be graded",
                    where=option,
                    hints=["name one input with one trajectory, or choose one with --stimulus"],
                )
        return places

    def _chosen(self, specs: Sequence[EvalSpec]) -> set[tuple[int, str]]:
        """The stimuli that `--tag` and `--stimulus` leave, as (position of the spec, name)."""
        words = SelectionWords(tags=self._options["tags"], patterns=self._options["patterns"])
        hits: dict[str, int] = {}
        kept = [select_stimuli(spec, words, None, hits) for spec in specs]
        for pattern in words.patterns:
            if not hits.get(pattern):
                print_warning(f"--stimulus '{pattern}' matches nothing")
        return {(number, stimulus.name) for number, spec in enumerate(kept) for stimulus in spec.stimuli}

    def _assigned(
        self, documents: Sequence[Document], matcher: Matcher, chosen: set[tuple[int, str]]
    ) -> list[Assigned]:
        from vally.run.regrading.work import Assigned

        found: list[Assigned] = []
        seen: Counter[tuple[Match, str, str | None]] = Counter()
        candidates = [match for match in matcher.matches() if (match.spec, matcher.stimulus(match).name) in chosen]
        for document in documents:
            if document.format == "record":
                match = matcher.of_record(document)
                if match is None:
                    self._warned[f"stimulus '{document.stimulus}' is not in the given specs"] += 1
                elif match in candidates:
                    found.append(Assigned(document, match))
            else:
                imported = self._imported(document, matcher, candidates)
                if imported is not None:
                    found.append(imported)
        for item in found:
            key = (item.match, item.document.variant, item.document.model)
            item.index = seen[key]
            seen[key] += 1
        for item in found:
            # What a record does not tell is the number of those that are there.
            item.total = seen[item.match, item.document.variant, item.document.model]
        return found

    def _imported(self, document: Document, matcher: Matcher, candidates: Sequence[Match]) -> Assigned | None:
        from vally.run.regrading.work import Assigned, imported_trajectory, with_stimulus

        try:
            work_dir = str(self._context.cwd) if document.format == "atif" else ""
            trajectory, warnings = imported_trajectory(document, work_dir)
            match, odd = self._stimulus_for(trajectory, matcher, candidates)
        except (VallyError, ValueError) as error:
            self._fail(document.where, str(error), getattr(error, "code", None) or "bad-record")
            print_hints(getattr(error, "hints", ()))
            return None
        for warning in (*warnings, *([odd] if odd else [])):
            print_warning(f"{document.where}: {warning}")
        model = trajectory.metadata.get("model")
        document.model = model if isinstance(model, str) else None
        return Assigned(document, match, trajectory=with_stimulus(trajectory, matcher.stimulus(match)))

    def _stimulus_for(self, trajectory: Any, matcher: Matcher, candidates: Sequence[Match]) -> tuple[Match, str | None]:
        if self._options["patterns"] and len(candidates) == 1:
            return candidates[0], None
        return matcher.of_prompts(trajectory, candidates)

    def _nothing(self, documents: Sequence[Document], specs: Sequence[EvalSpec]) -> int:
        if documents:
            say("error: no record matches a stimulus that is selected")
            names = dict.fromkeys(stimulus.name for spec in specs for stimulus in spec.stimuli)
            print_hints([f"stimuli: {', '.join(list(names)[:20]) or 'none'}"])
        else:
            say("error: nothing to grade: the input holds no trajectory")
        return 1

    def _warn(self, where: str, text: str, code: str) -> None:
        say(error_line(text, where=where, code=code, level="warning"))

    def _fail(self, where: str, text: str, code: str) -> None:
        self._failed = True
        say(error_line(text, where=where, code=code))

    def _print_summed_warnings(self) -> None:
        for text, count in self._warned.most_common(_SHOWN_WARNINGS):
            print_warning(f"{text}: {plural(count, 'record')} left out")
        if len(self._warned) > _SHOWN_WARNINGS:
            print_warning(f"{len(self._warned) - _SHOWN_WARNINGS} more stimuli are not in the given specs")


def _stdin() -> IO[bytes] | None:
    return None if sys.stdin is None else sys.stdin.buffer
