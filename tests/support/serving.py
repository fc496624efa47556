#!/usr/bin/env python3
"""A tool server that serves the list in a file and answers every call.

    serving.py FILE

FILE holds a result of tools/list, or {"pages": [result, ...]} with a cursor each. It is read anew for every list, so that a test
may change it. What comes in is appended to FILE.record. A call's text is its arguments as JSON.
"""

import json
import sys


def listed(parameters):
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    if not text.startswith('{"pages":'):
        return text  # as it is: it may be nested deeper than this interpreter reads
    pages = json.loads(text)["pages"]
    page = int(parameters.get("cursor", "0"))
    return json.dumps({**pages[page], **({"nextCursor": str(page + 1)} if page + 1 < len(pages) else {})})


def answer(method, parameters):
    """The result as text; nothing for a method that is not known."""
    if method == "tools/list":
        return listed(parameters)
    result = answered(method, parameters)
    return None if result is None else json.dumps(result)


def answered(method, parameters):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "serving", "version": "1"}}
    if method == "ping":
        return {}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": json.dumps(parameters.get("arguments"), sort_keys=True)}]}
    return None


def main():
    record = open(sys.argv[1] + ".record", "a", encoding="utf-8")
    for line in sys.stdin:
        record.write(line)
        record.flush()
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        reply = '"error":{"code":-32601,"message":"no such method"}' if result is None else '"result":' + result
        print('{"jsonrpc":"2.0","id":%s,%s}' % (json.dumps(message["id"]), reply), flush=True)


main()
