#!/usr/bin/env python3
"""Starts a run, kills it without warning at a moment, and waits for the end of every process that came of it.

    kill.py AFTER MILLISECONDS WORD...

AFTER is the name of an event of the stream, or `start`; so many milliseconds later the run gets SIGKILL, unless it is over by then.
Whatever a killed run leaves behind becomes a child of this process, which ends when the last of them has. It prints one line of
JSON: {"killed", "seen", "left"}: `left` are the processes that were still there after a minute, and none is the only good answer.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time

PR_SET_CHILD_SUBREAPER = 36
SEEN = []


def children():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            if parent == os.getpid():
                with open("/proc/%s/cmdline" % pid, encoding="utf-8", errors="replace") as file:
                    found.append(file.read().replace("\0", " "))
        except OSError:
            pass  # it ended meanwhile
    return found


def too_late(*_):
    print(json.dumps({"killed": True, "seen": SEEN, "left": children() or ["a descendant"]}), flush=True)
    os._exit(1)


def main():
    after, milliseconds, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise SystemExit("no subreaper")
    taken = os.open("/dev/null", os.O_RDONLY)  # number 3, so that no end of the pipe has it
    reading, writing = os.pipe()
    os.dup2(writing, 3)
    run = subprocess.Popen(words, pass_fds=[3], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for number in {3, taken, writing}:
        os.close(number)
    moment = threading.Event()

    def read():
        with os.fdopen(reading, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                SEEN.append(json.loads(line)["event"] if line.endswith("\n") else "half a line")
                if SEEN[-1] == after:
                    moment.set()
        moment.set()

    threading.Thread(target=read, daemon=True).start()
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(60)
    if after != "start":
        moment.wait()
    time.sleep(milliseconds / 1000)
    killed = run.poll() is None
    run.kill()
    signal.alarm(60)
    run.wait()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    print(json.dumps({"killed": killed, "seen": SEEN, "left": []}), flush=True)


main()
