"""pbs.event(): the event for which the hook runs, the objects that the hook may read and change, and the answer of the hook."""

import sys

from . import _constants, _objects, _values
from ._context import current

_CODES = dict(_constants.EVENT_NAMES)


class _Event:
    """The event of a run. Every call of pbs.event() returns the same object."""

    def __init__(self, context):
        run = context.run
        data = run["input"]
        writable = data.get("writable") or {}
        hook = run["hook"]
        fields = {
            "type": _CODES[data["event"]], "requestor": data.get("requestor", ""), "requestor_host": data.get("requestor_host", ""),
            "hook_name": hook["name"], "hook_type": hook["type"], "alarm": hook["alarm"], "freq": hook["freq"],
            "order": hook["order"], "debug": hook["debug"], "enabled": True, "user": hook["user"],
            "fail_action": ",".join(hook["fail_action"]),
        }
        for name, kind in (("job", _objects.job), ("resv", _objects.resv), ("vnode", _objects.vnode)):
            if name in data:
                fields[name] = kind(data[name], writable.get(name, ()))
            if name + "_o" in data:
                fields[name + "_o"] = kind(data[name + "_o"])
        for name, kind, single in (("vnode_list", _objects.vnode, "vnode"), ("job_list", _objects.job, "job"), ("resv_list", _objects.resv, "resv")):
            if name in data:
                fields[name] = {item["id"]: kind(item, writable.get(single, ())) for item in data[name]}
        if "src_queue" in data:
            fields["src_queue"] = _objects.queue(data["src_queue"])
        if "management" in data:
            fields["management"] = _objects.management(data["management"])
        for name in ("progname", "pid"):
            if name in data:
                fields[name] = data[name]
        if "argv" in data:
            fields["argv"] = list(data["argv"])
        if "env" in data:
            fields["env"] = _values.pbs_env(data["env"])
        self.__dict__["_fields"] = fields
        self.__dict__["_data"] = data

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._fields:
            raise _values.EventIncompatibleError("event %s has no attribute '%s'" % (self._data["event"], name))
        return self._fields[name]

    def __setattr__(self, name, value):
        if name not in ("progname", "argv", "env") or name not in self._fields:
            raise _values.BadAttributeValueError("event attribute '%s' is readonly" % name)
        if name == "argv":
            value = [str(word) for word in value]
        elif name == "env":
            value = _values.pbs_env(value)
        else:
            value = str(value)
        self._fields[name] = value

    @property
    def attributes(self):
        return sorted(self._fields)

    def accept(self):
        """Ends the hook. The request continues with the changes that the hook has made."""
        context = current()
        context.verdict, context.message, context.code = "accept", None, None
        sys.exit(0)

    def reject(self, message=None, code=None):
        """Ends the hook. The request is refused. message: the reason for the user."""
        context = current()
        context.verdict = "reject"
        context.message = None if message is None else str(message)
        context.code = code if isinstance(code, int) else None
        sys.exit(0)

    def _changes(self):
        """Returns the changes that the hook has made."""
        changes = {}
        for name in ("job", "resv"):
            if name in self._fields:
                made = self._fields[name]._changes()
                if made:
                    changes[name] = made
        for name in ("vnode_list", "job_list"):
            lists = {key: item._changes() for key, item in self._fields.get(name, {}).items()}
            lists = {key: made for key, made in lists.items() if made}
            if lists:
                changes[name] = lists
        for name in ("progname", "argv"):
            if name in self._fields and self._fields[name] != self._data[name]:
                changes[name] = self._fields[name]
        if "env" in self._fields:
            env = {str(key): str(value) for key, value in self._fields["env"].items()}
            if env != self._data["env"]:
                changes["env"] = env
        return changes


_event = None


def event():
    """Returns the event for which this hook runs."""
    global _event
    if _event is None:
        _event = _Event(current())
    return _event
