"""Which backend runs the trials, and with which settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vally.cli.messages import print_warning, say
from vally.errors import BackendError, ConfigInvalid, UsageError, VallyError
from vally.run.calling import described

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.host import PluginHost
    from vally.model.evalspec import Project
    from vally.records import BackendSpec
    from vally.run.agent_network import AgentNetwork
    from vally.run.trial import RunContext


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """A backend and its settings as given; a key that was given twice has a list.

    `config` is what became of the settings; `agent_network` and `changeable` are those of its model, see `BackendSpec`.
    `is_named` tells one that was chosen from the default.
    """

    record: BackendSpec
    args: Mapping[str, str | list[str]]
    config: object
    agent_network: AgentNetwork
    changeable: frozenset[str] = frozenset()
    is_named: bool = True

    @property
    def fixed_args(self) -> Mapping[str, str | list[str]]:
        """The settings that a continued run must have again."""
        return {name: value for name, value in self.args.items() if name not in self.changeable}

    def print_answer(self, host: PluginHost, context: RunContext, *, quiet: bool) -> None:
        """Print what its `preflight` tells of how trials would run; raises `VallyError` when they could not."""
        import anyio

        told = anyio.run(self._ask, host, context)
        if told and not quiet:
            say(f"backend '{self.record.name}': {told}")

    async def _ask(self, host: PluginHost, context: RunContext) -> str:
        from vally.run.calling import invoke

        backend = host.create(self.record)
        try:
            probe = getattr(backend, "preflight", None)
            if probe is None:
                return "it does not tell beforehand whether it can start"
            told = await invoke(probe, self.config, context, blocking=self.record.blocking)
        except VallyError as error:
            raise self._placed(error) from error.__cause__
        except Exception as error:
            raise self._failed(error) from error
        finally:
            await self.shut_down(backend)
        return told if isinstance(told, str) else ""

    async def start(self, backend: Any, context: RunContext) -> None:
        """Prepare a backend object; raises `BackendError` when it cannot start."""
        from vally.run.calling import invoke

        try:
            await invoke(backend.prepare, self.args, context, blocking=self.record.blocking)
        except VallyError as error:
            raise self._placed(error) from error.__cause__
        except Exception as error:
            raise self._failed(error) from error

    def _placed(self, error: VallyError) -> VallyError:
        """The same error, which says where the backend was asked for unless it has a better place."""
        if self.is_named:
            error.where = error.where or f"--backend {self.record.name}"
        return error

    def _failed(self, error: Exception) -> BackendError:
        message = f"backend '{self.record.name}' cannot start: {described(error)}"
        return BackendError(message, code="backend-exception")

    async def abandon(self, backend: Any, seconds: float) -> None:
        """Let a backend remove, within some seconds, what it made for a run that does not happen."""
        import anyio

        with anyio.CancelScope(shield=True), anyio.move_on_after(seconds):
            await self.shut_down(backend)

    async def shut_down(self, backend: Any) -> None:
        """Shut a backend object down; what goes wrong is a warning."""
        from vally.run.calling import invoke

        try:
            await invoke(backend.shutdown, blocking=self.record.blocking)
        except Exception as error:
            print_warning(f"backend '{self.record.name}' did not shut down: {described(error)}")


def choose_backend(
    context: CliContext, host: PluginHost, project: Project, named: str | None, words: Sequence[tuple[str, str]]
) -> BackendChoice:
    """The backend of `--backend`, else of the project, else the default; raises `UsageError` for wrong settings."""
    from vally.model.evalspec import DEFAULT_BACKEND
    from vally.records import BackendSpec

    name = named or project.backend
    if words and name is None:
        raise UsageError("--backend-args needs --backend or a default backend in .vally.yaml")
    try:
        record = host.resolve_one("backend", name or DEFAULT_BACKEND, bases=(context.cwd,))
    except VallyError as error:
        if named is None and name is not None:
            error.where = error.where or _place(project, "/backend/name") or _place(project, "/backend")
        raise
    assert isinstance(record, BackendSpec)
    given = _merged(words)
    args = {**(project.backend_args if named is None else {}), **given}
    _check(host, record, args, project, given)
    config = host.parse_config(record, args)
    network: AgentNetwork = getattr(config, "agent_network", "host")
    changeable = frozenset(getattr(config, "changeable", ()))
    return BackendChoice(record, args, config, network, changeable, is_named=name is not None)


def _merged(words: Sequence[tuple[str, str]]) -> dict[str, str | list[str]]:
    given: dict[str, str | list[str]] = {}
    for key, value in words:
        earlier = given.get(key)
        given[key] = value if earlier is None else [*([earlier] if isinstance(earlier, str) else earlier), value]
    return given


def _check(
    host: PluginHost, record: BackendSpec, args: Mapping[str, object], project: Project, given: Collection[str]
) -> None:
    from vally.text.suggest import did_you_mean

    problem = _problem(host, record, args)
    if problem is None:
        return
    model = host.config_model(record)
    fields = model.model_fields if model is not None else {}
    known = sorted(field.alias or name for name, field in fields.items())
    # The argument without which there would not be this problem.
    name = next((key for key in args if problem != _problem(host, record, _without(args, key))), None)
    hint = f"arguments: {', '.join(known) or 'none'}"
    if name is not None and name not in known:
        hint = did_you_mean(name, known) or hint
    if name is not None and _takes_one(host, record, args, name):
        problem, hint = _several(name, args[name], name in given), f"leave one value of '{name}'"
    elif name is not None and f"'{name}'" not in problem:
        problem = f"'{name}': {problem}"
    raise UsageError(f"backend '{record.name}': {problem}", where=_where(name, project, given), hints=[hint])


def _takes_one(host: PluginHost, record: BackendSpec, args: Mapping[str, object], name: str) -> bool:
    """Whether an argument was given several values, and something else is said of one of them in a list."""
    values = args[name]
    if not isinstance(values, list) or len(values) < 2:
        return False

    def problem(value: object) -> str | None:
        return _problem(host, record, {**args, name: value})

    return any(problem(value) != problem([value]) for value in values)


def _several(name: str, values: Any, is_given: bool) -> str:
    if not is_given:
        return f"'{name}' takes one value, not a list"
    return f"'{name}' takes one value and was given {'twice' if len(values) == 2 else f'{len(values)} times'}"


def _without(args: Mapping[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in args.items() if key != name}


def _problem(host: PluginHost, record: BackendSpec, args: Mapping[str, object]) -> str | None:
    """The first thing that is wrong with arguments."""
    try:
        host.parse_config(record, args)
    except ConfigInvalid as error:
        return error.problems[0]
    return None


def _where(name: str | None, project: Project, given: Collection[str]) -> str:
    """Where an argument was given; a problem of several is told of the command line, if any was given there."""
    if project.path is None or name in given or (name is None and given):
        return "--backend-args"
    return _place(project, f"/backend/args/{name}") or project.path.name


def _place(project: Project, pointer: str) -> str | None:
    """Where something stands in the project file, as `file:line:column`."""
    position = project.positions.get(pointer)
    if project.path is None or position is None:
        return None
    return f"{project.path.name}:{position.line}:{position.column}"
