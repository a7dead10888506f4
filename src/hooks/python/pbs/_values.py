"""The types that values of attributes and resources have in a hook, and the conversion between these values and texts."""

import re

from . import _constants


class BadAttributeValueError(Exception):
    """An attribute was set to a value it cannot have."""


class BadAttributeValueTypeError(Exception):
    """An attribute was set to a value of a type it cannot have."""


class BadResourceValueError(Exception):
    """A resource was set to a value it cannot have."""


class BadResourceValueTypeError(Exception):
    """A resource was set to a value of a type it cannot have."""


class UnsetAttributeNameError(AttributeError):
    """The hook used an attribute that the object does not have."""


class UnsetResourceNameError(KeyError):
    """The hook used a resource that the complex does not have."""


class EventIncompatibleError(AttributeError):
    """The hook used an attribute that its event does not have."""


class duration(int):
    """A time span in seconds, made from a number or from a text [[hours:]minutes:]seconds[.milliseconds]."""

    def __new__(cls, value=0):
        if isinstance(value, str):
            match = re.match(r"^\s*(?:(?:(\d+):)?(\d+):)?(\d+)(?:\.\d+)?\s*$", value)
            if match is None:
                raise BadAttributeValueError("invalid duration value: %s" % value)
            hours, minutes, seconds = (int(part or 0) for part in match.groups())
            value = hours * 3600 + minutes * 60 + seconds
        return super().__new__(cls, int(value))

    def __str__(self):
        seconds = int(self)
        sign = "-" if seconds < 0 else ""
        minutes, second = divmod(abs(seconds), 60)
        hours, minute = divmod(minutes, 60)
        return "%s%02d:%02d:%02d" % (sign, hours, minute, second)

    __repr__ = __str__

    def __add__(self, other):
        return duration(int(self) + int(duration(other)))

    def __sub__(self, other):
        return duration(int(self) - int(duration(other)))

    __radd__ = __add__


_SIZE = re.compile(r"^\s*([+-]?\d+)\s*([kmgtp]?)([bw]?)\s*$", re.IGNORECASE)
_SHIFT = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_WORD_BYTES = 8


class size:
    """An amount of memory or disk space, made from a number of bytes or from a text such as 10gb. A sum has the smaller of the two units."""

    def __init__(self, value=0):
        if isinstance(value, size):
            self._count, self._unit, self._bytes = value._count, value._unit, value._bytes
            return
        match = _SIZE.match(str(value))
        if match is None:
            raise BadResourceValueError("invalid size value: %s" % (value,))
        count, prefix, word = match.groups()
        scale = _WORD_BYTES if word.lower() == "w" else 1
        self._count = int(count) * scale
        self._unit = prefix.lower()
        self._bytes = self._count << _SHIFT[self._unit]

    @classmethod
    def _of(cls, bytes_, unit):
        made = cls(0)
        made._unit = unit
        made._count = bytes_ >> _SHIFT[unit]
        made._bytes = bytes_
        return made

    def _with(self, other, sign):
        other = size(other)
        unit = min((self._unit, other._unit), key=_SHIFT.get)
        return size._of(self._bytes + sign * other._bytes, unit)

    def __add__(self, other):
        return self._with(other, 1)

    __radd__ = __add__

    def __sub__(self, other):
        return self._with(other, -1)

    def __rsub__(self, other):
        return size(other)._with(self, -1)

    def _compare(self, other):
        try:
            return self._bytes - size(other)._bytes
        except BadResourceValueError:
            return None

    def __eq__(self, other):
        return self._compare(other) == 0

    def __ne__(self, other):
        return not self == other

    def __lt__(self, other):
        return self._bytes < size(other)._bytes

    def __le__(self, other):
        return self._bytes <= size(other)._bytes

    def __gt__(self, other):
        return self._bytes > size(other)._bytes

    def __ge__(self, other):
        return self._bytes >= size(other)._bytes

    def __hash__(self):
        return hash(self._bytes)

    def __bool__(self):
        return self._bytes != 0

    def __int__(self):
        return self._bytes

    def __str__(self):
        return "%d%sb" % (self._count, self._unit)

    __repr__ = __str__


def _text_type(name, pattern, what):
    """Returns a type for texts of a certain form. what: the name of the form in error messages."""
    check = re.compile(pattern)

    def make(cls, value=""):
        text = str(value)
        if check.match(text) is None:
            raise BadAttributeValueError("invalid %s value: %s" % (what, text))
        return str.__new__(cls, text)

    return type(name, (str,), {"__new__": make, "__doc__": "A text that is a %s." % what, "__module__": "pbs"})


ANY = r"(?s)^.*$"
acl = _text_type("acl", ANY, "access list")
args = _text_type("args", ANY, "argument list")
checkpoint = _text_type("checkpoint", r"^([nscwu]|[cw]=\d{1,9})$", "checkpoint")
depend = _text_type("depend", r"^$|^[a-z]+:.+$", "dependency")
email_list = _text_type("email_list", ANY, "list of mail addresses")
exec_host = _text_type("exec_host", ANY, "exec_host")
group_list = _text_type("group_list", ANY, "list of groups")
hold_types = _text_type("hold_types", r"^(n|[uosp]+)$", "hold type")
job_sort_formula = _text_type("job_sort_formula", ANY, "formula")
join_path = _text_type("join_path", r"^(oe|eo|n)$", "join path")
keep_files = _text_type("keep_files", r"^(n|[oed]+)$", "keep files")
license_count = _text_type("license_count", ANY, "license count")
mail_points = _text_type("mail_points", r"^(n|[abcej]+)$", "mail points")
node_group_key = _text_type("node_group_key", ANY, "node group key")
path_list = _text_type("path_list", ANY, "list of paths")
place = _text_type("place", r"^$|^[A-Za-z_:=]+[\w:=.-]*$", "place")
range = _text_type("range", r"^\d+(-\d+(:\d+)?)?(%\d+)?$", "range")
route_destinations = _text_type("route_destinations", ANY, "list of destinations")
select = _text_type("select", ANY, "select")
software = _text_type("software", ANY, "software")
staging_list = _text_type("staging_list", ANY, "staging list")
state_count = _text_type("state_count", ANY, "state count")
user_list = _text_type("user_list", ANY, "list of users")
version = _text_type("version", ANY, "version")


class vchunk:
    """The resources of a job on one vnode: vnode_name, and chunk_resources, a dictionary of resource names and values."""

    def __init__(self, text):
        name, *resources = text.strip("()").split(":")
        self.vnode_name = name
        self.chunk_resources = {}
        for entry in resources:
            resource, _, value = entry.partition("=")
            self.chunk_resources[resource] = value

    def __repr__(self):
        return ":".join([self.vnode_name] + ["%s=%s" % entry for entry in self.chunk_resources.items()])


class exec_vnode(str):
    """The vnodes of a job. chunks: a vchunk for each of them, in order."""

    @property
    def chunks(self):
        return [vchunk(part) for part in self.replace("(", "").replace(")", "").split("+") if part]


class pbs_env(dict):
    """Environment variables. In the text, commas separate the variables, and a comma within a value has a backslash before it."""

    @classmethod
    def _parse(cls, text):
        env = cls()
        for entry in re.split(r"(?<!\\),", text):
            name, _, value = entry.partition("=")
            if name:
                env[name] = value.replace("\\,", ",")
        return env

    def __str__(self):
        return ",".join("%s=%s" % (name, str(value).replace(",", "\\,")) for name, value in self.items())


class node_state(int):
    """The states of a vnode, as the bits of pbs.ND_*. The text has the words of PBS, in the order of PBS."""

    @classmethod
    def _parse(cls, text):
        bits = 0
        for word in text.split(","):
            bits |= _constants.NODE_STATE_WORDS.get(word.strip(), 0)
        return cls(bits)

    def words(self):
        return [word for word, bit in _constants.NODE_STATE_WORDS.items() if bit and int(self) & bit] or ["free"]

    def __str__(self):
        return ",".join(self.words())


# The types of those attributes that have a type of their own, by name of the attribute.
NAMED_TYPES = {
    "Checkpoint": checkpoint, "depend": depend, "exec_host": exec_host, "exec_vnode": exec_vnode, "group_list": group_list,
    "Hold_Types": hold_types, "Join_Path": join_path, "Keep_Files": keep_files, "Mail_Points": mail_points,
    "Mail_Users": email_list, "Shell_Path_List": path_list, "stagein": staging_list, "stageout": staging_list,
    "User_List": user_list, "Authorized_Users": acl, "Authorized_Groups": acl, "Authorized_Hosts": acl,
    "job_sort_formula": job_sort_formula, "node_group_key": node_group_key, "route_destinations": route_destinations,
    "state_count": state_count, "license_count": license_count, "pbs_version": version,
    "array_indices_submitted": range, "array_indices_remaining": range,
}
NAMED_RESOURCES = {"select": select, "place": place, "software": software, "exec_vnode": exec_vnode}

_TRUE = {"true", "t", "y", "1"}
_FALSE = {"false", "f", "n", "0"}


def truth(text):
    """Returns the truth value that a text means; None: the text is not a boolean."""
    word = str(text).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def from_text(kind, name, text):
    """Returns the value for a text of PBS. kind, name: the type and the name of the attribute or resource."""
    if kind == "boolean":
        return truth(text)
    if kind in ("integer", "long", "long64", "time", "interactive"):
        try:
            return int(text)
        except ValueError:
            return 1 if truth(text) else 0
    if kind == "float":
        return float(text)
    if kind == "duration":
        return duration(text)
    if kind == "size":
        return size(text)
    if kind == "node_state":
        return node_state._parse(text)
    if name == "Variable_List":
        return pbs_env._parse(text)
    if name == "job_state":
        return _constants.STATE_OF_LETTER.get(text, text)
    special = NAMED_TYPES.get(name) or NAMED_RESOURCES.get(name)
    return text if special is None else special(text)


def to_text(kind, value):
    """Returns the text of a value for PBS. kind: the type of the attribute or resource. Raises ValueError or TypeError if it cannot have this value."""
    if kind == "boolean":
        flag = truth(value)
        if flag is None:
            raise ValueError("not a boolean: %s" % (value,))
        return "True" if flag else "False"
    if kind in ("integer", "long", "long64", "time"):
        if isinstance(value, str) and re.match(r"^\s*[+-]?\d+\s*$", value) is None:
            raise ValueError("not a whole number: %s" % value)
        return str(int(value))
    if kind == "float":
        return repr(float(value))
    if kind == "duration":
        try:
            return str(duration(value))
        except BadAttributeValueError as error:
            raise ValueError(str(error))
    if kind == "size":
        try:
            return str(size(value))
        except BadResourceValueError as error:
            raise ValueError(str(error))
    if kind == "node_state":
        return str(node_state(value)) if isinstance(value, int) else str(value)
    if isinstance(value, dict):
        return str(pbs_env(value))
    if isinstance(value, (list, tuple)):
        return ",".join(str(entry) for entry in value)
    if isinstance(value, (bytes, bytearray)):
        raise TypeError("bytes are no text")
    return str(value)
