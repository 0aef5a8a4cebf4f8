"""gitcp for Pydantic AI (`pip install 'gitcp[pydantic-ai]'`).

See docs/how-to/pydantic-ai.md.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

try:
    from pydantic_ai.agent import EventStreamHandler
    from pydantic_ai.durable_exec import (
        JSON_CODEC,
        BaseDurabilityCapability,
        DurabilityEngineSpec,
        DurableOperationBackend,
        DurableOperationId,
        JournalCallableOperationBackend,
        OperationConfigRole,
        ToolsetCallToolId,
        conversation_id_from_run_id,
    )
    from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import AgentDepsT
except ModuleNotFoundError as exc:
    if exc.name != "pydantic_ai":
        raise
    raise ModuleNotFoundError(
        "gitcp.adapters.pydantic_ai needs Pydantic AI:"
        " pip install 'gitcp[pydantic-ai]'",
        name=exc.name,
    ) from exc

from gitcp.adapters import made_elsewhere
from gitcp.adapters.turn_notes import TurnNotes
from gitcp.checkpoints.session import BaseSession
from gitcp.errors import UsageError
from gitcp.steps.model import StepOptions
from gitcp.steps.session import Session
from gitcp.store.checkpoint import Checkpoint

__all__ = ["GitcpDurability", "message_history", "save_run"]

# The key in a tool's metadata for its options as a step, or False.
_METADATA = "gitcp"
# For operations that only compute or ask: they are repeated if they were interrupted.
_ASKS: StepOptions = {"effect": "none", "loops": None}
_Config = StepOptions | Literal[False]


class _Run(NamedTuple):
    """The run that steps belong to: its session, its name, the runs of agents in it."""

    session: Session
    name: str
    begun: list[str]
    trust: bool

    @property
    def options(self) -> StepOptions:
        """The options that all its steps have."""
        return {"scope": self.name, "elsewhere": self.trust}


_CURRENT: ContextVar[_Run | None] = ContextVar("gitcp_run", default=None)


def message_history(session: BaseSession, *, trust: bool = False) -> list[ModelMessage]:
    """Returns the messages of a session's newest checkpoint, for `message_history=`.

    An agent calls the tools that the last message names. So messages that were made elsewhere
    need `trust`, unless they came from a remote that the user trusts (`gitcp trust`).

    Raises:
        UsageError: they were made elsewhere, and are not trusted.
        CorruptError: a part of the conversation is missing or damaged.
    """
    last = session.last
    if last is not None:
        made_elsewhere.check(session, last, trust=trust)
    return ModelMessagesTypeAdapter.validate_python(
        last.messages() if last is not None else []
    )


def save_run(
    session: BaseSession, result: AgentRunResult[Any], **given: Any
) -> Checkpoint:
    """Makes a checkpoint of the files and of all messages up to the end of a run.

    `given` are arguments of `Session.save`, such as `label` or `decisions`; the default
    `note` is the prompt.

    Raises:
        BusyError, StorageError: as `Session.save`.
    """
    everything = result.all_messages()
    messages = ModelMessagesTypeAdapter.dump_python(everything, mode="json")
    trigger, note = TurnNotes().name(messages)
    return session.save(
        messages=messages, **{"trigger": trigger, "note": note, **given}
    )


class GitcpDurability(BaseDurabilityCapability[AgentDepsT]):
    """Makes the runs of an agent durable: after a crash, finished work is not repeated.

        durable = GitcpDurability(gitcp.open(".").session("orders"))
        agent = Agent("openai:gpt-5.5", name="clerk", capabilities=[durable])
        with durable.run("order 4711"):
            result = agent.run_sync("Order paper")

    Inside `run`, each request to the model, each tool call and each listing of tools is a
    step of the session. If the program is started again with the same name of a run, it gets
    the recorded results, and continues from there. An interrupted request is made again. An
    interrupted tool call may have had an effect outside the project, so it raises
    `StepUnknownError` until a user resolves it, unless the tool's metadata names its effect:

        @agent.tool_plain(metadata={"gitcp": {"effect": "none"}})

    The value has options of `Session.step`, or is False: then the tool is called as without
    gitcp. A run is durable in one process at a time.

    What a model answered decides which tools are called. So results that were recorded
    elsewhere, and came with a pull, are refused unless `trust` is true.
    """

    engine_spec = DurabilityEngineSpec(
        engine_name="gitcp",
        durable_unit_noun="step",
        durable_container_noun="run",
        codec=JSON_CODEC,
        toolset_lifecycles={
            "function": "enter-always",
            "mcp": "enter-in-durable-unit",
            "dynamic": "enter-never",
        },
        # A step is identified by its number among those of its name, so their order must be
        # the same each time.
        sequential_tools_in_durable_context=True,
        tool_config_key=_METADATA,
    )

    def __init__(
        self,
        session: Session,
        *,
        tools: StepOptions | None = None,
        models: Mapping[str, Model] | None = None,
        event_stream_handler: EventStreamHandler[AgentDepsT] | None = None,
        name: str | None = None,
        trust: bool = False,
    ) -> None:
        """`tools` are the options of tools whose metadata has none."""
        super().__init__(
            models=models, event_stream_handler=event_stream_handler, name=name
        )
        self._session = session
        self._tools = tools or {}
        self._trust = trust

    @contextmanager
    def run(self, name: str) -> Iterator[None]:
        """Makes the agent's work inside durable, under the name of a run.

        Raises:
            UsageError: the name is empty, or this is inside another run.
        """
        if not name:
            raise UsageError("a run needs a name", hint="give it that of its job")
        if _CURRENT.get() is not None:
            raise UsageError(
                f"the run {name!a} is inside another one",
                hint="end that run first, or give the steps of both one name",
            )
        session = self._session
        # Each run has an object of its own, because an object counts the steps of one run.
        own = Session(session.workspace, session.name, session.branch)
        token = _CURRENT.set(_Run(own, name, [], self._trust))
        try:
            yield
        finally:
            _CURRENT.reset(token)

    @property
    def in_durable_context(self) -> bool:
        """Whether this is inside a run."""
        return _CURRENT.get() is not None

    def get_default_run_id(self) -> str | None:
        """Returns the id of an agent's run, which stays the same if the program starts again."""
        current = _CURRENT.get()
        if current is None:
            return None
        current.begun.append(self.name)
        number = current.begun.count(self.name)
        return f"{current.session.name}/{current.name}/{self.name}:{number}"

    async def get_run_start_time(self, run_id: str) -> datetime | None:
        """Returns when an agent's run first began; its `timeout=` counts from then."""
        current = _CURRENT.get()
        if current is None:
            return None

        async def began() -> float:
            return current.session.workspace.store.time()

        options: StepOptions = {**current.options, **_ASKS, "key": run_id}
        name = f"{self.name}__run_start_time"
        return datetime.fromtimestamp(
            await current.session.step(name, began, **options), UTC
        )

    def get_default_conversation_id(self, run_id: str) -> str | None:
        """Returns the id of the conversation of an agent's run."""
        return conversation_id_from_run_id(run_id) if self.in_durable_context else None

    def get_durable_operation_backend(self) -> DurableOperationBackend[Any]:
        """Returns the backend that runs operations as steps."""
        return _Backend(
            agent_name=self.name,
            default_model_id=self.default_model_id,
            config=_Options(self._tools),
        )


class _Options:
    """The options of each step, by its operation."""

    def __init__(self, tools: StepOptions) -> None:
        self._tools = tools

    def base(
        self, role: OperationConfigRole, *, operation_id: DurableOperationId
    ) -> StepOptions:
        if role == "capability" or isinstance(operation_id, ToolsetCallToolId):
            return self._tools
        return _ASKS

    def for_tool(
        self,
        role: OperationConfigRole,
        *,
        operation_id: DurableOperationId,
        tool: object | None,
        tool_name: str,
    ) -> _Config:
        base = self.base(role, operation_id=operation_id)
        if not isinstance(operation_id, ToolsetCallToolId):
            return base
        described = getattr(tool, "tool_def", None)
        said = (getattr(described, "metadata", None) or {}).get(_METADATA, {})
        if said is False:
            return False
        if not isinstance(said, dict):
            raise UsageError(
                f"the tool {tool_name!a} has {said!a} for gitcp in its metadata",
                hint='give options of a step, such as {"effect": "none"}, or False',
            )
        return {**base, **said}


class _Backend(JournalCallableOperationBackend[StepOptions]):
    """Runs each operation of an agent as a step."""

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: StepOptions,
    ) -> object:
        del cache_key
        current = _CURRENT.get()
        if current is None:
            return await body()

        async def take() -> object:
            return await body()

        options: StepOptions = {**current.options, **config}
        result = await current.session.step(name, take, **options)
        if isinstance(operation_id, ToolsetCallToolId) and not _is_recorded(result):
            # A user has resolved it: `gitcp steps answer NAME done --result JSON`.
            return {"kind": "tool_return", "result": result}
        return result


def _is_recorded(result: object) -> bool:
    """Whether a result is in the form in which Pydantic AI records results of tools."""
    return isinstance(result, dict) and "kind" in result
