#!/usr/bin/env python3
"""A tool server whose effects are counted: one line of the ledger for each, on the disk before it is answered.

    counting.py LEDGER

`bump` {"what"} adds a line and says the number of lines; `look` {} only says it, and is announced as reading.
"""

import json
import os
import sys

LEDGER = sys.argv[1]


def lines():
    with open(LEDGER, "a+", encoding="utf-8") as ledger:
        ledger.seek(0)
        return len(ledger.read().splitlines())


def bump(what):
    with open(LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write(what + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())


def schema(properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def answer(method, parameters):
    if method == "initialize":
        return {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "counting", "version": "1"}}
    if method == "tools/list":
        return {"tools": [
            {"name": "bump", "description": "Writes it into the ledger.", "inputSchema": schema({"what": {"type": "string"}})},
            {"name": "look", "description": "Says how much is in the ledger.", "inputSchema": schema({}),
             "annotations": {"readOnlyHint": True}},
        ]}
    if method == "tools/call":
        if parameters["name"] == "bump":
            bump(parameters["arguments"]["what"])
        return {"content": [{"type": "text", "text": str(lines())}]}
    return None


for raw in sys.stdin:
    message = json.loads(raw)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    said = {"error": {"code": -32601, "message": "unknown method"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
