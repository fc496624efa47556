#!/usr/bin/env python3
"""A tool server that counts: `add` has an effect, one line in the file `ledger`, each time it is called; `count` only reads it.

It works in the folder that it is started in, and holds a lock on the file `alive` for as long as it lives.
"""

import fcntl
import json
import os
import sys

TOOLS = [
    {"name": "add", "description": "Adds an item to the ledger.", "annotations": {"readOnlyHint": False},
     "inputSchema": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}},
    {"name": "count", "description": "Counts the items of the ledger.", "annotations": {"readOnlyHint": True},
     "inputSchema": {"type": "object", "properties": {}}},
]


def call(name, arguments):
    ledger = os.open("ledger", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        if name == "add":
            os.write(ledger, (arguments["item"] + "\n").encode())
            return {"text": "added " + arguments["item"], "typed": None}
        items = os.read(ledger, 1 << 20).decode().split()
        return {"text": str(len(items)), "typed": {"ledger": {"items": items}}}
    finally:
        os.close(ledger)


def answer(message):
    method, parameters = message["method"], message.get("params") or {}
    if method == "initialize":
        info = {"name": "counting", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        said = call(parameters["name"], parameters.get("arguments") or {})
        result = {"content": [{"type": "text", "text": said["text"]}], "isError": False}
        return {**result, "structuredContent": said["typed"]} if said["typed"] else result
    return None


alive = open("alive", "w")
fcntl.flock(alive, fcntl.LOCK_SH)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message)
        reply = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
