"""The run a hook is in: what it was given, what it said, and the way to ask the server. Set up by hook_host.py, once in a process."""

_current = None


class Context:
    """tables: attribute types by kind of object; run: the frame that started this hook; ask: sends a question and returns the answer."""

    def __init__(self, setup, run, ask):
        self.setup = setup
        self.run = run
        self.logs = []
        self.verdict = "accept"
        self.message = None
        self.code = None
        self.requests = {}
        self._ask = ask

    @property
    def server_name(self):
        return self.run["input"].get("server", "")

    def table(self, kind):
        return self.setup["tables"].get(kind, {})

    def resource_type(self, name):
        return self.run["resources"].get(name)

    def query(self, what, name):
        """[{id, attrs}, ...]; name "": all."""
        answer = self._ask({"what": what, "name": name})
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["items"]

    def request(self, name, value=True):
        self.requests[name] = value

    def request_job(self, job, wish):
        self.requests.setdefault("jobs", {})[job] = wish

    def first_host(self):
        return bool(self.run["input"].get("first_host", True))

    def log(self, level, job, text):
        self.logs.append({"level": int(level), "job": job, "text": str(text)})


def begin(context):
    global _current
    _current = context


def current():
    if _current is None:
        raise RuntimeError("pbs is there for hooks only")
    return _current
