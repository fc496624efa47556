#!/usr/bin/env python3
"""A tool server for tests, without an SDK: it does what it is asked for, including what no server should do.

    misbehaving.py [--refuse-to-start] [--ignore-end] [--note FILE] [--hold PIPE]

--refuse-to-start  writes a line to stderr and exits with 3 before a word is spoken
--ignore-end       stays when its input ends, and ignores SIGTERM
--note FILE        appends one line of JSON to FILE for what it lives through: {"what", "pid", ...}
--hold PIPE        keeps this named pipe open for writing, as does every process that it starts

Every tool takes an object. A `tools/call` of `hang` is never answered; a `notifications/cancelled` is noted.
"""

import json
import os
import signal
import subprocess
import sys

TOOLS = {
    "add": ("Adds two integers.", {"a": {"type": "integer"}, "b": {"type": "integer"}}, ["a", "b"]),
    "big": ("Returns so many KiB of numbered lines.", {"kib": {"type": "integer", "minimum": 0}}, ["kib"]),
    "die": ("Ends this process in the middle of the call.", {}, []),
    "fail": ("Says that it failed.", {"why": {"type": "string"}}, ["why"]),
    "hang": ("Never answers.", {}, []),
    "read_hang": ("Never answers, and only reads.", {}, []),
    "look": ("Returns this process's environment, descriptors, directory and ids.", {}, []),
    "spawn": ("Starts a process that outlives this one if it may, and returns its id.", {"session": {"type": "boolean"}}, []),
}


HELD = os.open(sys.argv[sys.argv.index("--hold") + 1], os.O_WRONLY) if "--hold" in sys.argv else None


def note(what, **more):
    if "--note" in sys.argv:
        with open(sys.argv[sys.argv.index("--note") + 1], "a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, "pid": os.getpid(), **more}) + "\n")


def descriptors():
    seen = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            seen[name] = os.readlink("/proc/self/fd/" + name)
        except OSError:
            pass  # the one that the listing itself used
    return {name: where for name, where in seen.items() if not where.startswith("/proc/")}


def lines(kib):
    text = "".join("line %09d of the numbered lines of a large result\n" % at for at in range(kib * 1024 // 55 + 1))
    return text[: kib * 1024]


def call(name, arguments):
    """The text of a result, and whether it is an error."""
    if name == "add":
        return str(arguments["a"] + arguments["b"]), False
    if name == "big":
        return lines(arguments["kib"]), False
    if name == "fail":
        return arguments["why"], True
    if name == "look":
        look = {
            "environment": dict(os.environ), "descriptors": descriptors(), "directory": os.getcwd(),
            "pid": os.getpid(), "group": os.getpgid(0), "session": os.getsid(0), "parent": os.getppid(),
        }
        return json.dumps(look, sort_keys=True), False
    if name == "spawn":
        child = subprocess.Popen(
            [sys.executable, "-c", "import signal; signal.alarm(120); signal.pause()"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=bool(arguments.get("session")), pass_fds=[] if HELD is None else [HELD],
        )
        note("spawned", child=child.pid)
        return str(child.pid), False
    return "there is no tool " + name, True


def answer(message):
    method = message.get("method")
    parameters = message.get("params") or {}
    if method == "initialize":
        note("client", name=parameters["clientInfo"]["name"])
        return {
            "protocolVersion": "2025-06-18" if parameters.get("protocolVersion", "") > "2025-11-25" else parameters["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "misbehaving", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [
            {"name": name, "description": words, "inputSchema": {
                "type": "object", "properties": properties, "required": required, "additionalProperties": False},
             "annotations": {"readOnlyHint": name == "read_hang"}}
            for name, (words, properties, required) in TOOLS.items()
        ]}
    if method == "tools/call":
        note("called", tool=parameters["name"])
        if parameters["name"] == "die":
            print("misbehaving.py: dying as asked", file=sys.stderr, flush=True)
            os._exit(9)
        if parameters["name"] in ("hang", "read_hang"):
            return None
        text, failed = call(parameters["name"], parameters.get("arguments") or {})
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    raise LookupError(method)


def main():
    if "--refuse-to-start" in sys.argv:
        print("misbehaving.py: the store is locked", file=sys.stderr)
        sys.exit(3)
    note("started")
    if "--ignore-end" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for raw in sys.stdin:
        message = json.loads(raw)
        if "id" not in message:
            if message.get("method") == "notifications/cancelled":
                note("cancelled", request=message["params"].get("requestId"))
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = answer(message)
            if result is None:
                continue
            reply["result"] = result
        except LookupError as unknown:
            reply["error"] = {"code": -32601, "message": "no method %s" % unknown}
        print(json.dumps(reply), flush=True)
    note("input ended")
    while "--ignore-end" in sys.argv:
        signal.pause()


if __name__ == "__main__":
    main()
