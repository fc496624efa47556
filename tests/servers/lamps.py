#!/usr/bin/env python3
"""A tool server over streamable HTTP on a free port of this machine, on the Python SDK (`sdk`) or on FastMCP (`fastmcp`).

    lamps.py sdk|fastmcp [--only handshake|stateless] [--json] [--token TOKEN]

--only   refuses the other era, as a server does that does not know it
--json   answers with JSON instead of a stream where it may
--token  wants to see this bearer token

The first line of standard output is {"url"}. It ends with its standard input. Every request is noted on standard error by method,
path and the names of its headers.
"""

import argparse
import asyncio
import json
import os
import socket
import sys
import threading

import uvicorn

STATELESS = b"2026-07-28"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["sdk", "fastmcp"])
    parser.add_argument("--only", choices=["handshake", "stateless"])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--token")
    return parser.parse_args()


def add(a: int, b: int) -> dict[str, int]:
    """Adds two whole numbers."""
    return {"sum": a + b}


def big(kib: int) -> str:
    """Returns so many KiB of text."""
    return "lamp " * (kib * 1024 // 5)


def application(options):
    if options.kind == "sdk":
        from mcp.server import MCPServer
        from mcp.server.mcpserver import Context
        from mcp.server.mcpserver.exceptions import ToolError

        server = MCPServer("lamps")
    else:
        from fastmcp import Context, FastMCP
        from fastmcp.exceptions import ToolError

        server = FastMCP("lamps")

    def fail(why: str) -> str:
        """Fails."""
        raise ToolError(why)

    async def slow(steps: int, context: Context) -> str:
        """Takes its time, and says how far it is."""
        for step in range(steps):
            await context.report_progress(step, steps)
            await asyncio.sleep(0.2)
        return "done after %d" % steps

    for tool in [add, fail, big, slow]:
        server.tool()(tool)
    if options.kind == "sdk":
        return server.streamable_http_app(json_response=options.json)
    return server.http_app(path="/mcp", json_response=options.json)


def guarded(application, options):
    """The application behind what a proxy or an older version of it would refuse."""

    async def refuse(send, status, body, headers=()):
        body = json.dumps(body).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def guard(scope, receive, send):
        if scope["type"] != "http":
            return await application(scope, receive, send)
        headers = dict(scope["headers"])
        print(scope["method"], scope["path"], *sorted(name.decode() for name in headers), file=sys.stderr, flush=True)
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "unsupported protocol version"}}
        stateless = headers.get(b"mcp-protocol-version") == STATELESS
        if options.token and headers.get(b"authorization") != b"Bearer " + options.token.encode():
            return await refuse(send, 401, {"error": "unauthorized"}, [(b"www-authenticate", b"Bearer")])
        if options.only and scope["method"] == "POST" and stateless != (options.only == "stateless"):
            return await refuse(send, 400, error)
        return await application(scope, receive, send)

    return guard


def main():
    options = arguments()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))

    def end():
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
    config = uvicorn.Config(guarded(application(options), options), log_level="error", lifespan="on")
    print(json.dumps({"url": "http://127.0.0.1:%d/mcp" % listener.getsockname()[1]}), flush=True)
    uvicorn.Server(config).run(sockets=[listener])


main()
