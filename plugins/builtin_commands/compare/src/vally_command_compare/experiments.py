"""The comparisons of an experiment: each treatment variant with the baseline, by eval file and model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vally import SegmentNamer, VallyError, did_you_mean, name_key, name_line, parse_json, print_warning
from vally_command_compare.sides import Side, read_side

PLAN_NAME = "plan-snapshot.json"
SUMMARY_NAME = "experiment-summary.json"
MANIFEST_NAMES = ("experiment-manifest.json", "shard-manifest.json")
ARGUMENT = "<experiment-dir>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two sides to compare and how the record names them."""

    names: Mapping[str, str]
    baseline: Side
    treatment: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A run directory of an experiment and what its plan says."""

    directory: Path
    name: str
    baseline: str
    variants: tuple[str, ...]
    evals: tuple[Mapping[str, Any], ...]
    contaminated: frozenset[tuple[str, str, str]] = frozenset()
    """Arms (variant, eval file, model) whose agents had something else than they should."""

    def comparisons(self, wanted: Sequence[str], warn: Callable[[Side], None]) -> Iterator[Comparison]:
        """The comparisons in plan order; `warn` tells what of a side was left out.

        Raises `VallyError` for a variant that is not in the plan.
        """
        treatments = self._treatments(wanted)
        directories = self.variant_directories()
        sides = {name: read_side(directories[name], name, ARGUMENT) for name in (self.baseline, *treatments)}
        for side in sides.values():
            warn(side)
        for item in self.evals:
            if item["variant"] in treatments:
                comparison = self._comparison(item, sides)
                if comparison is not None:
                    yield comparison

    def variant_directories(self) -> dict[str, Path]:
        """Where the records of each variant lie."""
        namer = SegmentNamer()
        return {name: self.directory / namer.segment((), name) for name in self.variants}

    def _treatments(self, wanted: Sequence[str]) -> list[str]:
        known = [name for name in self.variants if name != self.baseline]
        composed = {name_key(name): name for name in self.variants}
        wanted = [composed.get(name_key(name), name) for name in wanted]
        for name in wanted:
            if name not in known:
                hints = [hint] if (hint := did_you_mean(name, known)) else []
                why = "is the baseline" if name == self.baseline else "is no variant of this experiment"
                raise VallyError(f"'{name}' {why}", where="--variant", hints=[*hints, f"variants: {', '.join(known)}"])
        return list(dict.fromkeys(wanted)) or known

    def _comparison(self, item: Mapping[str, Any], sides: Mapping[str, Side]) -> Comparison | None:
        file, model = str(item["evalFile"]), str(item.get("model") or "")
        spoiled = [name for name in (item["variant"], self.baseline) if (name, file, model) in self.contaminated]
        if spoiled:
            arm = name_line(f"{item['variant']}, {file}, {model}")
            print_warning(f"{arm}: not compared, because {name_line(spoiled[0])} is contaminated")
            return None
        treatment = sides[item["variant"]].only(eval_file=file, model=model)
        baseline = self._baseline(sides[self.baseline], file, model)
        if baseline is None or not treatment.attempts:
            name = name_line(f"{item['variant']}, {file}, {model}")
            missing = "the baseline" if baseline is None else "the variant"
            print_warning(f"{name}: not compared, because {missing} has no records of this eval")
            return None
        names = {
            "experimentName": self.name,
            "baseline": self.baseline,
            "treatment": str(item["variant"]),
            "evalFile": file,
            "model": model,
        }
        return Comparison(names=names, baseline=baseline, treatment=treatment)

    def _baseline(self, side: Side, file: str, model: str) -> Side | None:
        """The baseline's trials with the same model; where models are what varies, those with its only one."""
        same = side.only(eval_file=file, model=model)
        if same.attempts:
            return same
        every = side.only(eval_file=file, model=None)
        return every if len({attempt.model for attempt in every.attempts}) == 1 else None


def open_experiment(path: Path) -> Experiment:
    """Read the plan of an experiment's run directory, or of the newest one in it; raises `VallyError`."""
    directory = _newest(path)
    plan, manifest = _document(directory / PLAN_NAME), _manifest(directory)
    experiment = manifest.get("experiment")
    evals = plan.get("evals")
    if not isinstance(experiment, Mapping) or not isinstance(evals, list):
        raise VallyError(f"the manifest or the plan of '{directory}' cannot be used", where=ARGUMENT)
    baseline = experiment.get("baseline")
    if not isinstance(baseline, str) or not baseline:
        raise VallyError(
            "this experiment names no baseline", where=ARGUMENT, hints=["compare with --baseline and --treatment"]
        )
    return Experiment(
        directory=directory,
        name=str(experiment.get("name") or ""),
        baseline=baseline,
        variants=tuple(map(str, experiment.get("variantNames") or ())),
        contaminated=frozenset(_contaminated(directory)),
        evals=tuple(item for item in evals if isinstance(item, Mapping) and "variant" in item and "evalFile" in item),
    )


def _newest(path: Path) -> Path:
    if (path / PLAN_NAME).is_file():
        return path
    runs = [item for item in path.iterdir() if (item / PLAN_NAME).is_file()]
    if not runs:
        raise VallyError(
            f"'{path}' is no run directory of an experiment",
            where=ARGUMENT,
            hints=["name the directory with plan-snapshot.json", "compare two runs with --baseline and --treatment"],
        )
    return max(runs, key=lambda item: (item / PLAN_NAME).stat().st_mtime_ns)


def _manifest(directory: Path) -> Mapping[str, Any]:
    for name in MANIFEST_NAMES:
        if (directory / name).is_file():
            return _document(directory / name)
    raise VallyError(f"'{directory}' has no {' or '.join(MANIFEST_NAMES)}", where=ARGUMENT)


def _contaminated(directory: Path) -> Iterator[tuple[str, str, str]]:
    """The arms that the summary of the experiment names; a run without one says nothing."""
    path = directory / SUMMARY_NAME
    items = _document(path).get("contaminated") if path.is_file() else None
    for item in items if isinstance(items, list) else ():
        yield str(item.get("variant")), str(item.get("evalFile")), str(item.get("model"))


def _document(path: Path) -> Mapping[str, Any]:
    try:
        document = parse_json(path.read_bytes())
    except OSError as error:
        raise VallyError(f"cannot read '{path}': {error.strerror or error}", where=ARGUMENT) from error
    except ValueError as error:
        raise VallyError(f"'{path}' is not valid JSON: {error}", where=ARGUMENT) from error
    if not isinstance(document, Mapping):
        raise VallyError(f"'{path}' is not a JSON object", where=ARGUMENT)
    return document
