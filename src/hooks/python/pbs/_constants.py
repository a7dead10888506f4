"""The constants that hooks use. Event bits, letters of states and numbers are those of PBS."""


class _Coded(str):
    """A word that is also equal to a number. PBS names the states of jobs by letters; hooks that were written for older versions compare them with numbers."""

    def __new__(cls, text, code):
        self = super().__new__(cls, text)
        self._code = code
        return self

    def __int__(self):
        return self._code

    __index__ = __int__

    def __eq__(self, other):
        if isinstance(other, int):
            return self._code == other
        return str.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return str.__hash__(self)


EVENT_NAMES = (
    ("queuejob", 0x01), ("modifyjob", 0x02), ("resvsub", 0x04), ("movejob", 0x08), ("runjob", 0x10), ("provision", 0x20),
    ("execjob_begin", 0x40), ("execjob_prologue", 0x80), ("execjob_epilogue", 0x100), ("execjob_preterm", 0x200),
    ("execjob_end", 0x400), ("exechost_periodic", 0x800), ("execjob_launch", 0x1000), ("exechost_startup", 0x2000),
    ("execjob_attach", 0x4000), ("periodic", 0x8000), ("resv_end", 0x10000), ("execjob_resize", 0x20000),
    ("execjob_abort", 0x40000), ("execjob_postsuspend", 0x80000), ("execjob_preresume", 0x100000), ("management", 0x200000),
    ("modifyvnode", 0x400000), ("jobobit", 0x800000), ("postqueuejob", 0x1000000), ("modifyresv", 0x2000000),
    ("resv_begin", 0x4000000), ("resv_confirm", 0x8000000),
)

LOG_EVENTS = {
    "LOG_ERROR": 0x0004, "LOG_WARNING": 0x0004, "LOG_DEBUG": 0x0004,
    "EVENT_ERROR": 0x0001, "EVENT_SYSTEM": 0x0002, "EVENT_ADMIN": 0x0004, "EVENT_JOB": 0x0008, "EVENT_JOB_USAGE": 0x0010,
    "EVENT_SECURITY": 0x0020, "EVENT_SCHED": 0x0040, "EVENT_DEBUG": 0x0080, "EVENT_DEBUG2": 0x0100, "EVENT_RESV": 0x0200,
    "EVENT_DEBUG3": 0x0400, "EVENT_DEBUG4": 0x0800, "EVENT_FORCE": 0x8000,
}

_JOB_STATES = (
    ("TRANSIT", "T", 0), ("QUEUED", "Q", 1), ("HELD", "H", 2), ("WAITING", "W", 3), ("RUNNING", "R", 4), ("EXITING", "E", 5),
    ("EXPIRED", "X", 6), ("BEGUN", "B", 7), ("MOVED", "M", 8), ("FINISHED", "F", 9), ("SUSPEND", "S", 400),
    ("SUSPEND_USERACTIVE", "U", 410),
)
JOB_STATES = {"JOB_STATE_" + name: _Coded(letter, code) for name, letter, code in _JOB_STATES}
STATE_OF_LETTER = {str(state): state for state in JOB_STATES.values()}

JOB_SUBSTATES = {
    "TRANSIN": 0, "TRANSICM": 1, "TRNOUT": 2, "TRNOUTCM": 3, "QUEUED": 10, "PRESTAGEIN": 11, "SYNCRES": 13, "STAGEIN": 14,
    "STAGEGO": 15, "STAGECMP": 16, "HELD": 20, "SYNCHOLD": 21, "DEPNHOLD": 22, "WAITING": 30, "STAGEFAIL": 37, "PRERUN": 41,
    "RUNNING": 42, "SUSPEND": 43, "SCHSUSP": 45, "EXITING": 50, "STAGEOUT": 51, "STAGEDEL": 52, "EXITED": 53, "ABORT": 54,
    "KILLSIS": 56, "RUNEPILOG": 57, "OBIT": 58, "TERM": 59, "RERUN": 60, "RERUN1": 61, "RERUN2": 62, "RERUN3": 63,
    "EXPIRED": 69, "BEGUN": 70, "PROVISION": 71, "WAITING_JOIN_JOB": 72, "TERMINATED": 91, "FINISHED": 92, "FAILED": 93,
    "MOVED": 94,
}

NODE_STATES = {
    "ND_FREE": 0x0, "ND_OFFLINE": 0x1, "ND_DOWN": 0x2, "ND_DELETED": 0x4, "ND_UNRESOLVABLE": 0x8, "ND_JOBBUSY": 0x10,
    "ND_STALE": 0x20, "ND_JOB_EXCLUSIVE": 0x40, "ND_BUSY": 0x80, "ND_STATE_UNKNOWN": 0x100, "ND_INITIALIZING": 0x400,
    "ND_PROV": 0x800, "ND_WAIT_PROV": 0x1000, "ND_RESV_EXCLUSIVE": 0x2000, "ND_MAINTENANCE": 0x20000, "ND_SLEEP": 0x40000,
}
NODE_STATE_WORDS = {
    "free": 0x0, "offline": 0x1, "down": 0x2, "unresolvable": 0x8, "job-busy": 0x10, "stale": 0x20, "job-exclusive": 0x40,
    "busy": 0x80, "state-unknown": 0x100, "initializing": 0x400, "provisioning": 0x800, "wait-provisioning": 0x1000,
    "resv-exclusive": 0x2000, "maintenance": 0x20000, "sleep": 0x40000,
}

SHARING = {
    "ND_DEFAULT_SHARED": "default_shared", "ND_DEFAULT_EXCL": "default_excl", "ND_DEFAULT_EXCLHOST": "default_exclhost",
    "ND_IGNORE_EXCL": "ignore_excl", "ND_FORCE_EXCL": "force_excl", "ND_FORCE_EXCLHOST": "force_exclhost",
}

RESV_STATES = {
    "RESV_STATE_NONE": 0, "RESV_STATE_UNCONFIRMED": 1, "RESV_STATE_CONFIRMED": 2, "RESV_STATE_WAIT": 3,
    "RESV_STATE_TIME_TO_RUN": 4, "RESV_STATE_RUNNING": 5, "RESV_STATE_FINISHED": 6, "RESV_STATE_BEING_DELETED": 7,
    "RESV_STATE_DELETED": 8, "RESV_STATE_DELETING_JOBS": 9, "RESV_STATE_DEGRADED": 10, "RESV_STATE_BEING_ALTERED": 11,
    "RESV_STATE_IN_CONFLICT": 12,
}

MANAGER_COMMANDS = ("CREATE", "DELETE", "SET", "UNSET", "LIST", "PRINT", "ACTIVE", "IMPORT", "EXPORT")
MANAGER_OBJECTS = ("SERVER", "QUEUE", "JOB", "NODE", "RESV", "RSC", "SCHED", "HOST", "HOOK", "PBS_HOOK")
MANAGER_OBJECT_NUMBERS = {
    "SERVER": 0, "QUEUE": 1, "JOB": 2, "NODE": 3, "RESV": 4, "RSC": 5, "SCHED": 6, "HOST": 7, "HOOK": 8, "PBS_HOOK": 9,
}
REPLY_CHOICES = {
    "BRP_CHOICE_NULL": 1, "BRP_CHOICE_Queue": 2, "BRP_CHOICE_RdytoCom": 3, "BRP_CHOICE_Commit": 4, "BRP_CHOICE_Select": 5,
    "BRP_CHOICE_Status": 6, "BRP_CHOICE_Text": 7, "BRP_CHOICE_Locate": 8, "BRP_CHOICE_RescQuery": 9,
}


def exported():
    """Returns all constants by the names that hooks use, and the tables that give the name of a value."""
    names = {}
    names.update({name.upper(): code for name, code in EVENT_NAMES})
    names["HOOK_EVENT_TYPES"] = {code: name.upper() for name, code in EVENT_NAMES}
    names.update(LOG_EVENTS)
    names.update(JOB_STATES)
    names.update({"JOB_SUBSTATE_" + name: code for name, code in JOB_SUBSTATES.items()})
    names.update(NODE_STATES)
    names.update(SHARING)
    names.update(RESV_STATES)
    names.update(REPLY_CHOICES)
    names.update({"MGR_CMD_" + name: number for number, name in enumerate(MANAGER_COMMANDS)})
    names.update({"MGR_OBJ_" + name: number for name, number in MANAGER_OBJECT_NUMBERS.items()})
    names.update({"QTYPE_EXECUTION": "Execution", "QTYPE_ROUTE": "Route", "ND_PBS": "PBS"})
    names.update({"SV_STATE_" + name: text for name, text in (
        ("IDLE", "Idle"), ("ACTIVE", "Active"), ("HOT", "Hot_Start"), ("SHUTDEL", "Terminating_Delayed"),
        ("SHUTIMM", "Terminating"), ("SHUTSIG", "Terminating"))})
    for table, prefix in (
        ("REVERSE_JOB_STATE", "JOB_STATE_"), ("REVERSE_JOB_SUBSTATE", "JOB_SUBSTATE_"), ("REVERSE_RESV_STATE", "RESV_STATE_"),
        ("REVERSE_MGR_CMDS", "MGR_CMD_"), ("REVERSE_MGR_OBJS", "MGR_OBJ_"), ("REVERSE_BRP_CHOICES", "BRP_CHOICE_"),
    ):
        names[table] = {value: name for name, value in list(names.items()) if name.startswith(prefix)}
    names["REVERSE_NODE_STATE"] = {code: name for name, code in NODE_STATES.items()}
    return names
