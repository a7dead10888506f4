"""Runs Python hooks for pbs_server and pbs_mom, one at a time, each in a process of its own.

This process reads frames (JSON and a form feed) on descriptor 3 and answers on descriptor 4. It has already
loaded the pbs module, so that the start of a hook takes little more than a fork.

P1. A hook runs in a forked child with its own session. What the hook changes in its own process ends with it.
P2. When a hook has ended or must stop, all processes that it has started are killed. Orphans become children of this process (child subreaper).
P3. The child has neither descriptor 3 nor 4. What it sends back is passed on only if it is exactly one answer.
"""

import base64
import errno
import json
import os
import select
import signal
import sys
import time
import traceback

CONTROL_IN, CONTROL_OUT = 3, 4
OUTPUT_MAX = 64 * 1024
ANSWER_MAX = 16 * 1024 * 1024
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
KILL_ROUNDS = 500

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pbs  # noqa: E402
from pbs import _context, _event  # noqa: E402

sys.path.pop(0)


def prctl(option, value):
    """Calls prctl(2). Without ctypes it does nothing: orphans then do not become children of this process, and only the process group of the hook is killed."""
    if LIBC is not None:
        LIBC.prctl(option, value, 0, 0, 0)


try:
    import ctypes

    LIBC = ctypes.CDLL(None)
except Exception:
    LIBC = None


class Frames:
    """The frames that arrive on a descriptor: JSON texts, each ended by a form feed."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.waiting = b""

    def take(self):
        """Returns the next complete frame that has arrived; None: there is none."""
        text, found, rest = self.waiting.partition(b"\f")
        if not found:
            return None
        self.waiting = rest
        return json.loads(text.decode("utf-8"))

    def fill(self):
        """Reads the data that have arrived. Returns False if the other side is gone."""
        chunk = os.read(self.descriptor, 1 << 20)
        self.waiting += chunk
        return chunk != b""


def write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]


def send(descriptor, data):
    write_all(descriptor, json.dumps(data).encode("utf-8") + b"\f")


# ---- the child: one run of one hook


def child_main(setup, run, code, ends):
    """Runs the hook, sends its answer and ends the process. ends: the child's ends of the pipes, by name."""
    try:
        answer = run_hook(setup, run, code, ends)
    except BaseException:  # every error must become an answer
        answer = {"verdict": "error", "error": traceback.format_exc()}
    try:
        send(ends["answer"], answer)
    finally:
        os._exit(0)


def run_hook(setup, run, code, ends):
    os.setsid()
    for name in ("SIGINT", "SIGTERM", "SIGCHLD", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    os.close(CONTROL_IN)
    os.close(CONTROL_OUT)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(ends["output"], 1)
    os.dup2(ends["output"], 2)
    enter(run.get("directory"), run.get("identity"))
    questions = Frames(ends["answers"])

    def ask(question):
        send(ends["questions"], question)
        while True:
            frame = questions.take()
            if frame is not None:
                return frame
            if not questions.fill():
                return {"error": "the server has gone"}

    context = _context.Context(setup, run, ask)
    _context.begin(context)
    pbs.hook_config_filename = run.get("config_file")
    pbs.pbs_conf.update(setup.get("conf") or {})
    if run.get("config_file"):
        os.environ["PBS_HOOK_CONFIG_FILE"] = run["config_file"]
    error = None
    try:
        exec(code, {"__name__": "__main__", "__builtins__": __builtins__, "__file__": run["hook"]["name"]})
    except SystemExit:
        pass
    except BaseException:
        error = own_traceback()
    sys.stdout.flush()
    sys.stderr.flush()
    answer = {"logs": context.logs}
    if error is not None:
        answer.update(verdict="error", error=error)
    else:
        answer.update(verdict=context.verdict, message=context.message, code=context.code, requests=context.requests)
        answer["changes"] = _event.event()._changes() if context.verdict == "accept" or run["input"].get("keep_rejected") else {}
    return answer


def own_traceback():
    """Returns the traceback without the frames of this file."""
    kind, value, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return "".join(traceback.format_exception(kind, value, trace))


def enter(directory, identity):
    """Changes to the directory and takes the identity of the user, which cannot be undone."""
    try:
        os.chdir(directory or "/")
    except OSError:
        os.chdir("/")
    if identity is not None:
        os.setgroups(identity["groups"])
        os.setgid(identity["gid"])
        os.setuid(identity["uid"])
    # If the hook host is killed, the kernel then also kills the hook. The kernel clears this setting when the identity changes, so this call comes last.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# ---- the hook host: starts runs, watches them and cleans up


class Run:
    """A hook that is running."""

    def __init__(self, setup, run, code):
        self.answer = b""
        self.output = b""
        self.garbled = False
        pipes = {name: os.pipe() for name in ("answer", "output", "questions", "answers")}
        self.pid = os.fork()
        if self.pid == 0:
            for name, (reading, writing) in pipes.items():
                os.close(writing if name == "answers" else reading)
            child_main(setup, run, code, {name: ends[0 if name == "answers" else 1] for name, ends in pipes.items()})
        for name, (reading, writing) in pipes.items():
            os.close(reading if name == "answers" else writing)
        self.answer_end, self.output_end = pipes["answer"][0], pipes["output"][0]
        self.questions = Frames(pipes["questions"][0])
        self.answers_end = pipes["answers"][1]
        self.status = None

    def read(self, descriptor):
        """Reads what the child has written to a pipe. Returns False if no process of the hook has the pipe open any more."""
        chunk = os.read(descriptor, 1 << 16)
        if descriptor == self.answer_end:
            if len(self.answer) <= ANSWER_MAX:
                self.answer += chunk
        elif len(self.output) < OUTPUT_MAX:
            self.output += chunk[: OUTPUT_MAX - len(self.output)]
        return chunk != b""

    def drain(self):
        """Reads what is left in the pipes when all processes of the hook have ended."""
        for descriptor in (self.answer_end, self.output_end):
            os.set_blocking(descriptor, False)
            try:
                while self.read(descriptor):
                    pass
            except BlockingIOError:
                pass

    def close(self):
        for descriptor in (self.answer_end, self.output_end, self.questions.descriptor, self.answers_end):
            os.close(descriptor)


def kill_all(pid):
    """Kills the process group of the hook, and the orphans that have become our children, until none is left (P2). Returns the child's wait status."""
    status = None
    for round_ in range(KILL_ROUNDS):
        for victim in [-pid] + (children() if round_ > 0 else []):
            try:
                os.kill(victim, signal.SIGKILL)
            except OSError:
                pass
        while True:
            try:
                gone, how = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return status
            if gone == pid:
                status = how
            if gone == 0:
                break
        time.sleep(0.002)
    return status



def children():
    me = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == me:
            found.append(int(name))
    return found


def answer_of(run, stopped):
    """Returns the answer of the child as it is passed on. If there is none, returns an answer with the reason."""
    text, ended, rest = run.answer.partition(b"\f")
    output = run.output.decode("utf-8", "replace")
    if run.garbled:
        return {"verdict": "error", "error": "the hook wrote something else than its answer", "output": output}
    if stopped:
        return {"verdict": "stopped", "output": output}
    if len(run.answer) > ANSWER_MAX:
        return {"verdict": "error", "error": "the hook's answer is too long", "output": output}
    if not ended:
        how = run.status
        if how is not None and os.WIFSIGNALED(how):
            return {"verdict": "error", "error": "the hook was killed by signal %d" % os.WTERMSIG(how), "output": output}
        code = os.WEXITSTATUS(how) if how is not None and os.WIFEXITED(how) else "unknown"
        return {"verdict": "error", "error": "the hook ended without an answer, exit status %s" % code, "output": output}
    try:
        answer = json.loads(text.decode("utf-8"))
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or rest:
        return {"verdict": "error", "error": "the hook wrote something else than its answer", "output": output}
    answer["output"] = output
    return answer


class Host:
    """Takes the frames of the daemon and answers them. It runs one hook at a time."""

    def __init__(self):
        self.control = Frames(CONTROL_IN)
        self.setup = {"tables": {}}
        self.codes = {}
        self.wakeup, wake = os.pipe()
        os.set_blocking(self.wakeup, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake)

    def serve(self):
        while True:
            frame = self.control.take()
            if frame is None:
                if not self.control.fill():
                    return
                continue
            if "setup" in frame:
                self.setup = frame["setup"]
            elif "script" in frame:
                self.keep(frame["script"])
            elif "forget" in frame:
                self.codes.pop(frame["forget"], None)
            elif "run" in frame:
                send(CONTROL_OUT, {"done": self.run(frame["run"])})

    def keep(self, script):
        """Compiles a script, which is sent only once, and keeps the code or, if the script has a fault, the text of the fault."""
        try:
            source = base64.b64decode(script["content"])
            self.codes[script["key"]] = compile(source, script["name"], "exec", dont_inherit=True)
        except BaseException:
            self.codes[script["key"]] = traceback.format_exc(limit=0)

    def run(self, request):
        code = self.codes.get(request["script"])
        if code is None or isinstance(code, str):
            return {"verdict": "error", "error": code or "the hook's script is not here"}
        run = Run(self.setup, request, code)
        try:
            stopped = self.mind(run)
            run.status = kill_all(run.pid)
            run.drain()
            return answer_of(run, stopped)
        finally:
            run.close()

    def mind(self, run):
        """Watches a run. Returns False when the child has ended, and True when the child must be stopped."""
        watched = {CONTROL_IN, self.wakeup, run.answer_end, run.output_end, run.questions.descriptor}
        while True:
            try:
                ready = select.select(sorted(watched), [], [])[0]
            except OSError as error:
                if error.errno == errno.EINTR:
                    continue
                raise
            for descriptor in ready:
                if descriptor == CONTROL_IN:
                    if not self.control.fill():
                        kill_all(run.pid)
                        os._exit(1)
                elif descriptor == self.wakeup:
                    os.read(self.wakeup, 4096)
                elif descriptor == run.questions.descriptor:
                    if not run.questions.fill():
                        watched.discard(descriptor)
                elif not run.read(descriptor):
                    watched.discard(descriptor)
            if self.pass_on(run):
                return True
            if has_ended(run.pid):
                return False

    def pass_on(self, run):
        """Passes the questions of the child to the daemon, and the answers to the child. Returns True if the child must be stopped."""
        try:
            question = run.questions.take()
            while question is not None:
                send(CONTROL_OUT, {"query": {"what": str(question["what"]), "name": str(question["name"])}})
                question = run.questions.take()
        except (ValueError, TypeError, KeyError):
            run.garbled = True
            return True
        frame = self.control.take()
        while frame is not None:
            if "stop" in frame:
                return True
            if "answer" in frame:
                try:
                    send(run.answers_end, frame["answer"])
                except BrokenPipeError:
                    pass
            frame = self.control.take()
        return False


def has_ended(pid):
    """Returns whether the child has ended. The child is not reaped here, so that no other process can get its pid."""
    info = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return info is not None


def main():
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    send(CONTROL_OUT, {"ready": os.getpid()})
    Host().serve()


main()
