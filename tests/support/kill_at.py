#!/usr/bin/env python3
"""Runs a program, and kills it (SIGKILL) where it is about to make the N-th of its writes and syncs.

    kill_at.py N REPORT WORD...

All its threads are traced, and none of its children: what they do is not counted. Counted are, as they are entered, the writes to files,
pipes and sockets, the syncs, and the calls that make, rename, link, cut or remove a file. N = 0 only counts. REPORT gets one line of JSON when nothing is left of the
program and of what it started: {"made": how many were counted, "killed": whether it was, "at": the call}. Exits as the program does.
"""

import ctypes
import json
import os
import platform
import signal
import sys

TRACEME, SETOPTIONS, SYSCALL, SYSCALL_INFO = 0, 0x4200, 24, 0x420E
OPTIONS = 0x1 | 0x8 | 0x10 | 0x100000  # system calls are marked; threads are traced; exec is told; it dies with us
WALL = 0x40000000
WRITES = {"x86_64": {1: "write", 18: "pwrite", 20: "writev", 44: "sendto", 46: "sendmsg", 296: "pwritev"},
          "aarch64": {64: "write", 66: "writev", 68: "pwrite", 70: "pwritev", 206: "sendto", 211: "sendmsg"}}
OTHERS = {"x86_64": {74: "fsync", 75: "fdatasync", 76: "truncate", 77: "ftruncate", 82: "rename", 83: "mkdir", 86: "link", 87: "unlink",
                     258: "mkdirat", 263: "unlinkat", 264: "renameat", 265: "linkat", 277: "sync_file_range", 285: "fallocate", 316: "renameat2"},
          "aarch64": {34: "mkdirat", 35: "unlinkat", 37: "linkat", 38: "renameat", 45: "truncate", 46: "ftruncate", 47: "fallocate",
                      82: "fsync", 83: "fdatasync", 84: "sync_file_range", 276: "renameat2"}}
OPENS = {"x86_64": {2: 1, 257: 2}, "aarch64": {56: 2}}
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def entered(thread):
    """The number and the arguments of the system call that is entered; nothing where one is left."""
    info = (ctypes.c_uint8 * 128)()
    if libc.ptrace(SYSCALL_INFO, thread, ctypes.sizeof(info), ctypes.addressof(info)) < 0 or info[0] != 1:
        return None
    words = memoryview(bytes(info[24:80])).cast("Q")
    return words[0], list(words[1:7])


def name_of(thread, number, arguments):
    machine = platform.machine()
    if number in OTHERS[machine]:
        return OTHERS[machine][number]
    if number in OPENS[machine]:
        return "create" if arguments[OPENS[machine][number]] & os.O_CREAT else None
    if number in WRITES[machine]:
        try:
            goes_to = os.readlink("/proc/%d/fd/%d" % (thread, ctypes.c_int(arguments[0]).value))
        except OSError:
            return None
        return None if goes_to.startswith("anon_inode:") else "%s to %s" % (WRITES[machine][number], goes_to)
    return None


def main():
    last, report, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if libc.prctl(36, 1, 0, 0, 0) != 0:  # PR_SET_CHILD_SUBREAPER: what it leaves behind becomes ours
        raise SystemExit("no subreaper")
    program = os.fork()
    if program == 0:
        libc.ptrace(TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execvp(words[0], words)
    _, status = os.waitpid(program, 0)
    if not os.WIFSTOPPED(status) or libc.ptrace(SETOPTIONS, program, None, OPTIONS) < 0:
        raise SystemExit("cannot be traced")
    libc.ptrace(SYSCALL, program, None, None)
    made, at, ending = 0, None, None
    while True:
        try:
            thread, status = os.waitpid(-1, WALL)
        except ChildProcessError:
            break  # nothing is left
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            ending = status if thread == program else ending
            continue
        stop, deliver = os.WSTOPSIG(status), None
        if stop == signal.SIGTRAP | 0x80:
            call = entered(thread)
            name = call and name_of(thread, *call)
            if name:
                made += 1
                if made == last:
                    at = name
                    os.kill(program, signal.SIGKILL)
        elif stop not in (signal.SIGTRAP, signal.SIGSTOP):
            deliver = stop
        libc.ptrace(SYSCALL, thread, None, deliver)
    with open(report, "w", encoding="utf-8") as file:
        json.dump({"made": made, "killed": at is not None, "at": at}, file)
    sys.stdout.flush()
    if os.WIFSIGNALED(ending):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(ending))
    os._exit(os.WEXITSTATUS(ending))


main()
