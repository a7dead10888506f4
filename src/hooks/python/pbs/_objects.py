"""Jobs, vnodes, queues, reservations and the server as a hook sees them. Only the changes are sent
back to PBS, which checks them again."""

from . import _values
from ._context import current


class pbs_resource:
    """Resources by name. A resource that is not set has the value None. To set a resource to None removes it."""

    def __init__(self, owner, attribute, texts, writable):
        self.__dict__.update(_owner=owner, _attribute=attribute, _texts=dict(texts), _writable=writable, _changed={}, _values={})

    def _kind(self, name):
        kind = current().resource_type(name)
        if kind is None and name not in self._texts:
            raise _values.UnsetResourceNameError(name)
        return kind or "string"

    def __getitem__(self, name):
        kind = self._kind(name)
        if name not in self._texts:
            return None
        if name not in self._values:
            self._values[name] = _values.from_text(kind, name, self._texts[name])
        return self._values[name]

    def __setitem__(self, name, value):
        kind = self._kind(name)
        if not self._writable:
            raise _values.BadAttributeValueError("%s attribute '%s' is readonly" % (self._owner, self._attribute))
        if value is None:
            self._texts.pop(name, None)
            self._values.pop(name, None)
            self._changed[name] = None
            return
        try:
            text = _values.to_text(kind, value)
        except ValueError as error:
            raise _values.BadResourceValueError("%s.%s: %s" % (self._attribute, name, error))
        except TypeError as error:
            raise _values.BadResourceValueTypeError("%s.%s: %s" % (self._attribute, name, error))
        self._texts[name] = text
        self._changed[name] = text
        self._values.pop(name, None)

    def __delitem__(self, name):
        self[name] = None

    def __contains__(self, name):
        return name in self._texts

    has_key = __contains__

    def __iter__(self):
        return iter(list(self._texts))

    def __len__(self):
        return len(self._texts)

    def __bool__(self):
        return bool(self._texts)

    def keys(self):
        return list(self._texts)

    def values(self):
        return [self[name] for name in self._texts]

    def items(self):
        return [(name, self[name]) for name in self._texts]

    def get(self, name, default=None):
        return self[name] if name in self._texts else default

    def __str__(self):
        return ",".join("%s=%s" % entry for entry in self._texts.items())

    __repr__ = __str__


class _Object:
    """An object of PBS. Its attributes have the names of PBS. An attribute that is not set has the value None."""

    _kind = ""

    def __init__(self, data, writable=()):
        self.__dict__.update(_id=data.get("id"), _texts=dict(data.get("attrs") or {}), _writable=frozenset(writable), _changed={}, _values={})

    @property
    def attributes(self):
        """The names of all attributes of this kind of object, whether they are set or not."""
        return sorted(set(current().table(self._kind)) | set(self._extra()))

    def _extra(self):
        return ()

    def _type(self, name):
        kind = current().table(self._kind).get(name)
        if kind is None and name not in self._texts:
            raise _values.UnsetAttributeNameError("%s has no attribute '%s'" % (self._kind, name))
        return kind or "string"

    def _readonly(self, name):
        return _values.BadAttributeValueError("%s attribute '%s' is readonly" % (self._kind, name))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        kind = self._type(name)
        values = self._values
        if name not in values:
            text = self._texts.get(name)
            if kind in ("resource_list", "entity_limit_res"):
                values[name] = pbs_resource(self._kind, name, text or {}, name in self._writable)
            elif text is None:
                return None
            else:
                values[name] = _values.from_text(kind, name, ",".join(text) if isinstance(text, list) else text)
        return values[name]

    def __setattr__(self, name, value):
        kind = self._type(name)
        if name not in self._writable:
            raise self._readonly(name)
        if kind == "resource_list":
            return self._set_resources(name, value)
        self._values.pop(name, None)
        if value is None:
            self._texts.pop(name, None)
            self._changed[name] = None
            return None
        try:
            text = _values.to_text(kind, value)
        except ValueError as error:
            raise _values.BadAttributeValueError("%s: %s" % (name, error))
        except TypeError as error:
            raise _values.BadAttributeValueTypeError("%s: %s" % (name, error))
        self._texts[name] = text
        self._changed[name] = text
        return None

    def _set_resources(self, name, value):
        held = getattr(self, name)
        if value is held:
            return
        wanted = dict(value.items()) if value is not None else {}
        for resource in held.keys():
            if resource not in wanted:
                held[resource] = None
        for resource, amount in wanted.items():
            held[resource] = amount

    def _changes(self):
        """Returns the changes by attribute: the new text, None (the attribute was unset), or the changes of a resource list by resource."""
        changes = dict(self._changed)
        for name, value in self._values.items():
            if isinstance(value, pbs_resource) and value._changed:
                changes[name] = dict(value._changed)
            elif isinstance(value, _values.pbs_env) and name in self._writable and str(value) != self._texts.get(name):
                changes[name] = str(value)
        return changes

    def __str__(self):
        return str(self._id)

    def __repr__(self):
        return "<pbs.%s %s>" % (self._kind, self._id)


class queue(_Object):
    """A queue, with its attributes, name, job() and jobs()."""

    _kind = "queue"

    @property
    def name(self):
        return self._id

    def _extra(self):
        return ("name",)

    def __getattr__(self, name):
        # The queue of an event's job is known by name only. Its attributes are queried when the hook first reads one.
        if not self.__dict__.get("_texts") and not name.startswith("_") and self._id:
            found = current().query("queue", self._id)
            if found:
                self.__dict__["_texts"] = dict(found[0]["attrs"])
        return super().__getattr__(name)

    def job(self, job_id):
        found = server().job(job_id)
        return found if found is not None and found.queue is not None and found.queue.name == self._id else None

    def jobs(self):
        return (job for job in server().jobs() if job.queue is not None and job.queue.name == self._id)


class job(_Object):
    """A job, with its attributes and id. Hooks of an execution host can also call rerun(), delete() and in_ms_mom()."""

    _kind = "job"

    @property
    def id(self):
        return self._id

    def _extra(self):
        return ("id",)

    def __getattr__(self, name):
        if name == "queue":
            text = self._texts.get("queue")
            if text is None:
                return None
            if "queue" not in self._values:
                self._values["queue"] = queue({"id": text})
            return self._values["queue"]
        if name == "resv":
            resv_id = self._texts.get("reserve_ID")
            return None if not resv_id else server().resv(resv_id)
        return super().__getattr__(name)

    def rerun(self):
        """Requests that the job is requeued."""
        current().request_job(self._id, "rerun")

    def delete(self):
        """Requests that the job is deleted."""
        current().request_job(self._id, "delete")

    def in_ms_mom(self):
        """Returns whether this host is the first host of the job."""
        return current().first_host()

    def is_checkpointed(self):
        return False

    def release_nodes(self, *_args, **_options):
        raise NotImplementedError("nodes of a job are released with pbs_release_nodes")


class vnode(_Object):
    """A vnode, with its attributes and name."""

    _kind = "vnode"

    @property
    def name(self):
        return self._id

    def _extra(self):
        return ("name",)

    def extract_state_strs(self):
        """Returns the names of the vnode's states, as in pbs.ND_*."""
        from . import _constants

        bits = int(self.state or 0)
        return [name for name, bit in _constants.NODE_STATES.items() if bit and bits & bit] or ["ND_FREE"]

    def extract_state_ints(self):
        from . import _constants

        bits = int(self.state or 0)
        return [bit for bit in _constants.NODE_STATES.values() if bit and bits & bit] or [0]


class resv(_Object):
    """A reservation, with its attributes and resvid."""

    _kind = "resv"

    @property
    def resvid(self):
        return self._id

    def _extra(self):
        return ("resvid",)


class server(_Object):
    """The server, with its attributes and name, and functions that return its jobs, queues, vnodes and reservations."""

    _kind = "server"

    def __init__(self):
        super().__init__({"id": current().server_name})

    @property
    def name(self):
        return self._id

    def _extra(self):
        return ("name",)

    def __getattr__(self, name):
        if not self.__dict__.get("_texts") and not name.startswith("_"):
            self.__dict__["_texts"] = dict(current().query("server", "")[0]["attrs"])
        return super().__getattr__(name)

    def _one(self, kind, what, name):
        found = current().query(what, str(name))
        return kind(found[0]) if found else None

    def _all(self, kind, what):
        return iter([kind(item) for item in current().query(what, "")])

    def job(self, job_id):
        return self._one(job, "job", job_id)

    def jobs(self):
        return self._all(job, "job")

    def queue(self, name):
        return self._one(queue, "queue", name)

    def queues(self):
        return self._all(queue, "queue")

    def vnode(self, name):
        return self._one(vnode, "vnode", name)

    def vnodes(self):
        return self._all(vnode, "vnode")

    def resv(self, resv_id):
        return self._one(resv, "resv", resv_id)

    def resvs(self):
        return self._all(resv, "resv")

    def scheduler_restart_cycle(self):
        """Requests a scheduling cycle, which begins after the hook has ended."""
        current().request("restart_cycle")


class _Attribute:
    """One attribute of a management request."""

    def __init__(self, data):
        self.name = data.get("name")
        self.resource = data.get("resource")
        self.value = data.get("value")
        self.op = data.get("op")
        self.flags = []
        self.sisters = []

    def __repr__(self):
        return "{}{} {} {}".format(self.name, "" if self.resource is None else "." + self.resource, self.op, self.value)


class management:
    """The request of a manager, and the answer of the server."""

    def __init__(self, data):
        self.__dict__.update({name: value for name, value in data.items() if name != "attribs"})
        self.attribs = [_Attribute(entry) for entry in data.get("attribs", [])]
