#!/usr/bin/env python3
"""A consumer of the event stream, as somebody else would write it: from the published rules, sharing no code with the program.

    consumer.py [--signal TERM --on EVENT] [--deadline SECONDS] -- COMMAND ...
        starts COMMAND with the stream on descriptor 3, reads it to its end, judges it, and prints a report
    consumer.py --recorded FILE
        judges a recorded stream

The report is one JSON object on stdout: {"ok", "problems": [{"rule", "line", "what"}], "outcome", "reason", "steps",
"calls", "rejected", "answer", "deltas", "catalogue", "dropped", "exit_code", "elapsed_s"}. The exit status is 1 when there is a problem.

Events and fields that this program does not know are dropped, as the published rules ask of every consumer.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

# ------------------------------------------------------------------------------------------------ the vocabulary

SCHEMA_VERSION = 1
OUTCOMES = ("answered", "answered_with_caveat", "awaiting_approval", "budget_exhausted", "incomplete")
REASONS = ("cancelled", "stuck")
CEILINGS = ("steps", "seconds", "bytes", "tokens")
MODEL_STATES = ("cold", "queued", "loading", "loaded", "failed", "absent")  # `asking` never reaches the stream
VERDICTS = ("unconfigured", "unsupported", "nothing_considered", "supported", "pass", "fail", "skipped")
FRAGMENT_CHARACTERS = 64


def text(value):
    return isinstance(value, str)


def truth(value):
    return isinstance(value, bool)


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def thing(value):
    return isinstance(value, dict)


def texts(value):
    return isinstance(value, list) and all(text(item) for item in value)


def things(value):
    return isinstance(value, list) and all(thing(item) for item in value)


def text_or_null(value):
    return value is None or text(value)


# event -> fields in the order in which they are emitted: (name, must it be there, what it must be)
FIELDS = {
    "mission_started": [
        ("schema_version", True, whole), ("objective", True, text), ("catalogue", True, texts), ("gated", True, texts),
        ("max_steps", True, whole), ("history", True, whole), ("sandbox", False, text), ("audit_ref", False, text_or_null),
        ("run_id", False, text), ("protocol", False, text), ("profile", False, text), ("granted", False, texts),
    ],
    "step_started": [
        ("index", True, whole), ("resumed", False, thing), ("catalogue", False, texts), ("injected", False, texts),
        ("review", False, thing), ("compacted", False, thing), ("plan", False, things), ("artifacts", False, thing),
    ],
    "reply_rejected": [("index", True, whole), ("problem", True, text), ("tool", False, text), ("usage", False, thing)],
    "tool_call": [
        ("index", True, whole), ("tool", True, text), ("arguments", True, thing), ("call", False, whole), ("usage", False, thing),
    ],
    "tool_result": [
        ("index", True, whole), ("tool", True, text), ("arguments", True, thing), ("ok", True, truth), ("exit_code", True, integer),
        ("output", True, text), ("error", True, text), ("handle", True, text), ("truncated", True, truth), ("call", False, whole),
    ],
    "gate_requested": [
        ("index", True, whole), ("tool", True, text), ("arguments", True, thing), ("reason", True, text), ("approval_id", False, text),
    ],
    "answer_delta": [("index", True, whole), ("part", True, whole), ("text", True, text)],
    "grounding": [
        ("ran", True, truth), ("grounded", True, truth), ("verified", True, truth), ("repairs", True, whole), ("repairing", True, truth),
        ("caveat", True, text), ("unsupported", True, texts), ("silent", True, texts), ("uncited", True, texts), ("checks", True, things),
    ],
    "answer": [("text", True, text), ("outcome", True, text), ("usage", False, thing)],
    "mission_finished": [
        ("outcome", True, text), ("steps", True, whole), ("max_steps", True, whole), ("budget", False, thing), ("reason", False, text),
        ("usage", False, thing), ("elapsed_s", False, number),
    ],
    "model_state": [
        ("index", False, whole), ("state", True, text), ("provider", True, text), ("model", True, text), ("detail", False, text),
        ("since_s", False, number), ("retry_after_s", False, number),
    ],
}

# what stands inside the objects: name -> (must it be there, what it must be)
INSIDE = {
    "resumed": {"from_seq": (True, whole), "steps_replayed": (True, whole)},
    "review": {"signal": (True, text), "verdict": (True, text), "reviews_left": (True, whole), "note": (False, text)},
    "compacted": {
        "dropped_turns": (True, whole), "dropped_messages": (True, whole), "freed_chars": (True, whole), "tokens_before": (True, whole),
        "tokens_after": (True, whole), "limit_tokens": (True, whole), "profile": (True, text), "dropped_results": (True, whole),
    },
    "artifacts": {"in": (True, texts), "out": (True, texts)},
}
CHECK_ROW = {
    "check": text, "configured": truth, "grounded": truth, "verdict": text, "considered": whole, "minimum": whole,
    "unsupported": texts, "detail": text, "advisory": truth,
}
PLAN_ROW = {"id": text, "goal": text, "rung": text}
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
THIRD_DECIMAL = 1e-9


class Step:
    """What one step has shown so far."""

    def __init__(self):
        self.outcomes = 0  # outcome records
        self.paid = 0  # outcome records that could carry the usage
        self.calls = 0
        self.last_position = None
        self.next_part = 0
        self.answered = False


class Judge:
    """Reads records one by one and keeps what is wrong with them."""

    def __init__(self):
        self.problems = []
        self.line = 0
        self.started = None
        self.finished = None
        self.answer = None
        self.final_grounding = False
        self.catalogue = []
        self.native = False
        self.steps = {}
        self.last_index = None
        self.resumed = False
        self.open_call = {}  # branch -> the tool_call that waits for its result
        self.handles = {}  # branch -> number of the last handle
        self.gates = []
        self.usages = []
        self.calls = []
        self.rejected = []
        self.deltas = []
        self.repairs = 0
        self.reviews = 0
        self.dropped = {}
        self.events = 0

    def wrong(self, rule, what):
        self.problems.append({"rule": rule, "line": self.line, "what": what})

    # -------------------------------------------------------------------------------------------- one line

    def read(self, raw):
        self.line += 1
        if not raw.endswith(b"\n"):
            self.wrong("newline", "the line does not end in a newline")

        def refuse(word):
            raise ValueError(word + " is no JSON number")

        try:
            record = json.loads(raw.decode("utf-8"), parse_constant=refuse)
        except (UnicodeDecodeError, ValueError) as problem:
            self.wrong("json", "not a line of JSON in UTF-8: %s" % problem)
            return None
        if not thing(record):
            self.wrong("object", "the line is not an object")
            return None
        name = record.get("event")
        if not text(name):
            self.wrong("event", "no event name")
            return None
        self.events += 1
        if self.finished is not None:
            self.wrong("finished_last", "%s after mission_finished" % name)
        if name not in FIELDS:
            self.dropped[name] = self.dropped.get(name, 0) + 1
            return record
        if self.started is None and name != "mission_started" and not self.resumed:
            if name == "step_started" and "resumed" in record:
                self.resumed = True
            else:
                self.wrong("started_first", "%s before mission_started" % name)
                self.resumed = True  # said once
        if self.fields(name, record):
            branch = record.get("branch")
            waiting = self.open_call.get(branch)
            if waiting is not None and name != "tool_result":
                self.wrong("call_then_result", "%s stands between a tool_call and its tool_result" % name)
                self.open_call[branch] = None
            getattr(self, "on_" + name)(record, branch)
        return record

    def fields(self, name, record):
        """Whether the record has the fields of its event, in their shape and order."""
        before = len(self.problems)
        keys = list(record)
        if keys[0] != "event":
            self.wrong("event_key_first", "%s: the key event does not stand first" % name)
        if "branch" in record:
            if not text(record["branch"]):
                self.wrong("field_type", "%s.branch is not a string" % name)
            elif keys[-1] != "branch":
                self.wrong("branch_key_last", "%s: the key branch does not stand last" % name)
        known = [field for field, _, _ in FIELDS[name]]
        if [key for key in keys if key in known] != [field for field in known if field in record]:
            self.wrong("key_order", "%s: its fields do not stand in the published order" % name)
        for field, required, fits in FIELDS[name]:
            if field not in record:
                if required:
                    self.wrong("required_field", "%s.%s is missing" % (name, field))
            elif record[field] is None and fits is not text_or_null:
                self.wrong("absent_not_null", "%s.%s is null: an optional field is left out" % (name, field))
            elif not fits(record[field]):
                self.wrong("field_type", "%s.%s has the wrong shape" % (name, field))
        for field, inner in INSIDE.items():
            if field in known and thing(record.get(field)):
                for key, (required, fits) in inner.items():
                    if key in record[field] and not fits(record[field][key]) or required and key not in record[field]:
                        self.wrong("inner_shape", "%s.%s.%s is missing or has the wrong shape" % (name, field, key))
        if "usage" in known and thing(record.get("usage")):
            self.usage(name, record["usage"])
        return len(self.problems) == before

    def usage(self, name, usage):
        for count in COUNTS:
            if not whole(usage.get(count)):
                self.wrong("usage_shape", "%s.usage.%s is missing or no count" % (name, count))
        if name != "mission_finished":
            return
        if not whole(usage.get("calls")):
            self.wrong("usage_shape", "mission_finished.usage.calls is missing or no count")
        cost = usage.get("cost")
        if cost is not None and not (thing(cost) and number(cost.get("amount")) and text(cost.get("currency"))):
            self.wrong("usage_shape", "mission_finished.usage.cost is no amount in a currency")

    # -------------------------------------------------------------------------------------------- the events

    def on_mission_started(self, record, _branch):
        if self.started is not None:
            self.wrong("started_once", "a second mission_started")
            return
        if self.line != 1:
            self.wrong("started_first", "mission_started is not the first line")
        self.started = record
        self.catalogue = record["catalogue"]
        if record["schema_version"] != SCHEMA_VERSION:
            self.wrong("schema_version", "schema_version %s" % record["schema_version"])
        self.offered(record["catalogue"])
        if record["gated"] != [name for name in record["catalogue"] if name in record["gated"]]:
            self.wrong("gated", "gated is not a part of the catalogue, in its order")
        if record.get("sandbox", "none") not in ("bwrap", "none"):
            self.wrong("closed_words", "sandbox %r" % record["sandbox"])
        if "protocol" in record:
            self.native = True
            if record["protocol"] != "native":
                self.wrong("closed_words", "protocol %r: json is left out" % record["protocol"])
        granted = record.get("granted")
        if granted is not None and (granted == [] or granted != sorted(granted)):
            self.wrong("granted", "granted is empty, or not sorted")
        if "run_id" in record and not re.fullmatch(r"run_\d{8}T\d{6}-[0-9a-f]{8}", record["run_id"]):
            self.wrong("run_id", "run_id %r" % record["run_id"])

    def offered(self, catalogue):
        if len(set(catalogue)) != len(catalogue):
            self.wrong("catalogue", "a name stands twice in the catalogue")
        for name in catalogue:
            if name != "mission_result" and not re.match(r"[A-Za-z_][A-Za-z0-9_-]*\..", name):
                self.wrong("catalogue", "%r is not <namespace>.<tool>" % name)
        if "mission_result" not in catalogue:
            self.wrong("catalogue", "mission_result is not offered")
        self.catalogue = catalogue

    def on_step_started(self, record, _branch):
        index = record["index"]
        if self.answer is not None:
            self.wrong("answer_closes", "a step after the answer")
        if self.last_index is not None and index <= self.last_index:
            self.wrong("index_order", "step %d after step %d" % (index, self.last_index))
        if self.last_index is None and index != 0 and not self.resumed:
            self.wrong("index_order", "the first step is %d" % index)
        if self.last_index is not None and index > self.last_index + 1:
            self.wrong("index_order", "step %d after step %d: a number was left out" % (index, self.last_index))
        if "resumed" in record and self.steps:
            self.wrong("resumed_first", "resumed on a step that is not the first")
        self.last_index = index
        self.reviews += "review" in record
        self.steps[index] = Step()
        if "catalogue" in record:
            self.offered(record["catalogue"])
        for row in record.get("plan", []):
            if not all(key in row and fits(row[key]) for key, fits in PLAN_ROW.items()):
                self.wrong("inner_shape", "step_started.plan has a row of another shape")

    def step(self, name, record):
        """The step a record belongs to; it must have been started, and be the one in hand."""
        step = self.steps.get(record["index"])
        if step is None:
            self.wrong("step_first", "%s of step %s, which has not started" % (name, record["index"]))
        elif "branch" not in record and record["index"] != self.last_index:
            self.wrong("step_in_hand", "%s of step %s while step %s is in hand" % (name, record["index"], self.last_index))
        if self.answer is not None:
            self.wrong("answer_closes", "%s after the answer" % name)
        return step

    def outcome_of_step(self, name, record, pays=True):
        step = self.step(name, record)
        if step is None:
            return None
        if "usage" in record:
            if step.paid:
                self.wrong("usage_first", "%s carries a usage, and is not the first record of its turn" % name)
            self.usages.append(record["usage"])
        step.outcomes += 1
        if pays:
            step.paid += 1
        return step

    def on_reply_rejected(self, record, _branch):
        self.outcome_of_step("reply_rejected", record)
        if not record["problem"].strip():
            self.wrong("problem", "reply_rejected.problem is empty")
        self.rejected.append(record)

    def on_tool_call(self, record, branch):
        step = self.outcome_of_step("tool_call", record)
        if self.started is not None and record["tool"] not in self.catalogue:
            self.wrong("offered", "%r was called and is not offered" % record["tool"])
        self.open_call[branch] = record
        self.calls.append({"index": record["index"], "tool": record["tool"], "arguments": record["arguments"]})
        position = record.get("call")
        if position == 0:
            self.wrong("call_position", "call 0 is left out")
        if not self.native:
            if position is not None:
                self.wrong("call_position", "call in the json protocol")
            if step is not None and step.calls:
                self.wrong("one_call", "a second tool_call in one step of the json protocol")
        elif step is not None:
            if step.last_position is not None and (position or 0) <= step.last_position:
                self.wrong("call_position", "call %s after call %s" % (position or 0, step.last_position))
            step.last_position = position or 0
        if step is not None:
            step.calls += 1

    def on_tool_result(self, record, branch):
        call = self.open_call.get(branch)
        self.open_call[branch] = None
        self.step("tool_result", record)
        if call is None:
            self.wrong("call_then_result", "a tool_result without its tool_call right before it")
        elif any(call.get(key) != record.get(key) for key in ("index", "tool", "arguments", "call")):
            self.wrong("call_matches_result", "the tool_result does not repeat its tool_call")
        if record["ok"] != (record["exit_code"] == 0):
            self.wrong("ok_is_zero", "ok %s with exit_code %s" % (record["ok"], record["exit_code"]))
        expected = self.handles.get(branch, 0) + 1
        if record["handle"] != "r%d" % expected and not self.resumed:
            self.wrong("handle", "handle %r where r%d is next" % (record["handle"], expected))
        self.handles[branch] = expected
        if self.calls:
            self.calls[-1].update({key: record[key] for key in ("ok", "exit_code", "output", "error", "handle", "truncated")})

    def on_gate_requested(self, record, _branch):
        self.outcome_of_step("gate_requested", record, pays=False)
        if self.started is not None and record["tool"] not in self.catalogue:
            self.wrong("offered", "%r waits at a gate and is not offered" % record["tool"])
        self.gates.append(record)

    def on_answer_delta(self, record, _branch):
        step = self.step("answer_delta", record)
        self.deltas.append(record["text"])
        if len(record["text"]) > FRAGMENT_CHARACTERS:
            self.wrong("fragment", "a fragment of %d characters" % len(record["text"]))
        if "\n" in record["text"][:-1]:
            self.wrong("fragment", "a fragment goes on after a newline")
        if not record["text"]:
            self.wrong("fragment", "an empty fragment")
        if step is None:
            return
        if step.outcomes:
            self.wrong("delta_before_outcome", "a fragment after what came of its step")
        if record["part"] not in (0, step.next_part):
            self.wrong("part", "part %d where %d is next" % (record["part"], step.next_part))
        step.next_part = record["part"] + 1

    def on_model_state(self, record, _branch):
        if record["state"] not in MODEL_STATES:
            self.wrong("closed_words", "model_state %r" % record["state"])
        step = self.steps.get(record.get("index", self.last_index))
        if step is not None and step.outcomes:
            self.wrong("delta_before_outcome", "a model_state after what came of its step")

    def on_grounding(self, record, _branch):
        if self.answer is not None:
            self.wrong("grounding_before_answer", "grounding after the answer")
        for row in record["checks"]:
            if not all(key in row and fits(row[key]) for key, fits in CHECK_ROW.items()):
                self.wrong("inner_shape", "grounding.checks has a row of another shape")
            elif row["verdict"] not in VERDICTS:
                self.wrong("closed_words", "verdict %r" % row["verdict"])
        if record["repairing"] and record["caveat"]:
            self.wrong("grounding_interim", "an interim grounding with a caveat")
        if record["repairing"] and record["repairs"] != self.repairs + 1:
            self.wrong("grounding_interim", "an interim grounding that does not count its repair")
        self.repairs = record["repairs"]
        self.final_grounding = not record["repairing"]

    def on_answer(self, record, _branch):
        if self.answer is not None:
            self.wrong("answer_once", "a second answer")
        if self.repairs and not self.final_grounding:
            self.wrong("grounding_before_answer", "an answer without its final grounding")
        if record["outcome"] not in ("answered", "answered_with_caveat"):
            self.wrong("closed_words", "answer.outcome %r" % record["outcome"])
        step = self.steps.get(self.last_index)
        if step is None:
            self.wrong("step_first", "an answer before any step")
        elif "usage" in record:
            if step.paid:
                self.wrong("usage_first", "the answer carries a usage, and is not the first record of its turn")
            self.usages.append(record["usage"])
        self.answer = record

    def on_mission_finished(self, record, _branch):
        if self.finished is not None:
            self.wrong("finished_once", "a second mission_finished")
            return
        self.finished = record
        outcome = record["outcome"]
        if outcome not in OUTCOMES:
            self.wrong("closed_words", "outcome %r" % outcome)
        if record.get("reason", "stuck") not in REASONS:
            self.wrong("closed_words", "reason %r" % record["reason"])
        if record.get("reason") == "cancelled" and outcome != "incomplete":
            self.wrong("cancelled_is_incomplete", "cancelled, and %s" % outcome)
        if (outcome in ("answered", "answered_with_caveat")) != (self.answer is not None):
            self.wrong("answer_and_outcome", "outcome %s, %s" % (outcome, "and an answer" if self.answer else "and no answer"))
        elif self.answer is not None and self.answer["outcome"] != outcome:
            self.wrong("answer_and_outcome", "outcome %s, and an answer that is %s" % (outcome, self.answer["outcome"]))
        if outcome == "awaiting_approval" and not self.gates:
            self.wrong("gate_and_outcome", "awaiting_approval without a gate")
        self.budget(record)
        if not self.resumed and record["steps"] > len(self.steps):
            self.wrong("steps", "%d steps, and %d were started" % (record["steps"], len(self.steps)))
        if outcome in ("answered", "answered_with_caveat") and not self.resumed and record["steps"] != len(self.steps):
            self.wrong("steps", "%d steps, and %d were carried out" % (record["steps"], len(self.steps)))
        if self.started is not None and record["max_steps"] != self.started["max_steps"]:
            self.wrong("max_steps", "max_steps %d at the end and %d at the start" % (record["max_steps"], self.started["max_steps"]))
        if "elapsed_s" in record:
            elapsed = record["elapsed_s"]
            if elapsed < 0 or abs(round(elapsed, 3) - elapsed) > THIRD_DECIMAL:
                self.wrong("elapsed", "elapsed_s %r" % elapsed)
        self.totals(record)

    def budget(self, record):
        budget = record.get("budget")
        if (budget is not None) != (record["outcome"] == "budget_exhausted"):
            self.wrong("budget_and_outcome", "outcome %s, %s a budget" % (record["outcome"], "without" if budget is None else "with"))
        if budget is None:
            return
        if sorted(budget) != ["limit", "spent", "which"] or not number(budget["limit"]) or not number(budget["spent"]):
            self.wrong("budget_shape", "budget is not {which, limit, spent}")
        elif budget["which"] not in CEILINGS:
            self.wrong("closed_words", "budget.which %r" % budget["which"])
        elif budget["which"] == "steps" and not (whole(budget["limit"]) and whole(budget["spent"])):
            self.wrong("budget_shape", "a budget of steps in fractions")
        elif budget["which"] == "steps" and budget["limit"] != record["max_steps"] and not self.resumed:
            self.wrong("budget_shape", "a budget of %s steps where max_steps is %d" % (budget["limit"], record["max_steps"]))

    def totals(self, record):
        usage = record.get("usage")
        if usage is None:
            if self.usages:
                self.wrong("usage_total", "replies reported a usage, and mission_finished has none")
            return
        plain = record["outcome"] in ("answered", "answered_with_caveat") and not self.gates and not self.resumed and not self.repairs
        plain = plain and not self.reviews  # a reviewer's reply is told by no record of its own
        for count in COUNTS:
            said = sum(each[count] for each in self.usages)
            if usage[count] < said or plain and usage[count] != said:
                self.wrong("usage_total", "%s: %d in all, %d on the records" % (count, usage[count], said))
        if usage["calls"] < len(self.usages) or plain and usage["calls"] != len(self.usages):
            self.wrong("usage_total", "%d calls, %d on the records" % (usage["calls"], len(self.usages)))

    # -------------------------------------------------------------------------------------------- the end

    def close(self):
        self.line += 1
        if not self.events:
            self.wrong("silence", "not one event: the command failed")
        elif self.finished is None:
            self.wrong("finished_last", "the stream ended without mission_finished")
        for branch, call in self.open_call.items():
            if call is not None:
                self.wrong("call_then_result", "the stream ended after a tool_call, without its tool_result")

    def report(self, exit_code):
        finished = self.finished or {}
        return {
            "ok": not self.problems,
            "problems": self.problems,
            "outcome": finished.get("outcome"),
            "reason": finished.get("reason"),
            "budget": finished.get("budget"),
            "steps": finished.get("steps"),
            "calls": self.calls,
            "rejected": self.rejected,
            "answer": (self.answer or {}).get("text"),
            "deltas": "".join(self.deltas),
            "catalogue": self.catalogue,
            "protocol": (self.started or {}).get("protocol", "json"),
            "usage": finished.get("usage"),
            "dropped": self.dropped,
            "exit_code": exit_code,
        }


# ---------------------------------------------------------------------------------------------------- the program


def start(command):
    """Starts the command with the writing end of a pipe as its descriptor 3."""
    reading, writing = os.pipe()

    # the pipe's reading end has the lowest free number, so that 3 is either that end or taken: nothing else is lost
    def hand_over():
        os.dup2(writing, 3, inheritable=True)

    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, close_fds=False, preexec_fn=hand_over)
    os.close(writing)
    return child, reading


def drive(options):
    judge = Judge()
    child, reading = start(options.command)
    killed = []

    def give_up():
        killed.append(True)
        child.kill()

    timer = threading.Timer(options.deadline, give_up)
    timer.start()
    began = time.monotonic()
    signalled = None
    try:
        with os.fdopen(reading, "rb") as stream:
            for raw in stream:
                record = judge.read(raw)
                if options.signal and signalled is None and record is not None and record["event"] == options.on:
                    signalled = time.monotonic()
                    child.send_signal(getattr(signal, "SIG" + options.signal))
        status = child.wait()
    finally:
        timer.cancel()
    judge.close()
    if killed:
        judge.wrong("deadline", "it did not end within %s seconds" % options.deadline)
    exit_code = status if status >= 0 else 128 - status
    expected = (0,) if not options.signal else (128 + getattr(signal, "SIG" + options.signal),)
    if options.exit is not None:
        expected = (options.exit,)
    if exit_code not in expected:
        judge.wrong("exit", "exit status %d, expected %s" % (exit_code, expected[0]))
    report = judge.report(exit_code)
    report["elapsed_s"] = round(time.monotonic() - began, 3)
    report["after_signal_s"] = None if signalled is None else round(time.monotonic() - signalled, 3)
    return report


def recorded(path):
    judge = Judge()
    with open(path, "rb") as stream:
        for raw in stream:
            judge.read(raw)
    judge.close()
    return judge.report(None)


def main():
    parser = argparse.ArgumentParser(description="Reads an event stream and says what is wrong with it.")
    parser.add_argument("--recorded", metavar="FILE", help="judge a recorded stream")
    parser.add_argument("--signal", metavar="NAME", help="send this signal (TERM, INT) ...")
    parser.add_argument("--on", metavar="EVENT", default="step_started", help="... at the first event of this name")
    parser.add_argument("--exit", type=int, help="the exit status that is expected, instead of 0 or that of the signal")
    parser.add_argument("--deadline", type=float, default=60.0, help="seconds after which the command is killed")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.command[:1] == ["--"]:
        options.command = options.command[1:]
    if bool(options.recorded) == bool(options.command):
        parser.error("either --recorded FILE or a command")
    report = recorded(options.recorded) if options.recorded else drive(options)
    json.dump(report, sys.stdout, ensure_ascii=False)
    print()
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
