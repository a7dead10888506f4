"""The present run of a hook: input, verdict, requests and log lines, and a function that asks the server. hook_host.py sets it up once in a process."""

_current = None


class Context:
    """setup: its `tables` have the types of attributes by kind of object. run: the frame that started the hook. ask: sends a question, returns the answer."""

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
        """Returns objects of the server as [{id, attrs}, ...]. what: their kind; name: of one object, or "" for all."""
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
