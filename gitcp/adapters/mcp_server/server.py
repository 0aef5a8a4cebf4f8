"""Serves the tools on stdin and stdout, with the protocol's own SDK."""

import threading

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from gitcp import __version__
from gitcp.adapters.mcp_server.schema import TOOLS, ToolSchema
from gitcp.adapters.mcp_server.tools import Tools, failure
from gitcp.errors import GitcpError

_NAME = "gitcp"


def listed() -> types.ListToolsResult:
    """Returns the tools as a client gets them."""
    return types.ListToolsResult(tools=[_tool(schema) for schema in TOOLS])


def serve(directory: str) -> None:
    """Answers a client until it closes our input."""
    anyio.run(_serve, directory)


def _tool(schema: ToolSchema) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=schema.reads_only)
    if not schema.reads_only:
        hints.destructive_hint = schema.destroys
    return types.Tool(
        name=schema.name,
        description=schema.description,
        input_schema=schema.schema,
        annotations=hints,
    )


async def _serve(directory: str) -> None:
    tools = Tools(directory)
    # One after the other: a plan is for the files as no other tool is changing them.
    turn = threading.Lock()

    def call(params: types.CallToolRequestParams) -> types.CallToolResult:
        with turn:
            try:
                text, failed = tools.call(params.name, params.arguments or {}), False
            except GitcpError as exc:
                text, failed = failure(exc), True
        block = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[block], is_error=failed)

    async def on_list(
        context: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return listed()

    async def on_call(
        context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        del context
        return await anyio.to_thread.run_sync(call, params)

    server = Server(
        _NAME, version=__version__, on_list_tools=on_list, on_call_tool=on_call
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
