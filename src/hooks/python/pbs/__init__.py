"""The pbs module of hooks: pbs.event(), pbs.server(), types of values and constants. docs/hooks.md describes it."""

from . import _constants
from ._context import current as _current
from ._event import event
from ._objects import job, management, pbs_resource, queue, resv, server, vnode
from ._values import (
    BadAttributeValueError,
    BadAttributeValueTypeError,
    BadResourceValueError,
    BadResourceValueTypeError,
    EventIncompatibleError,
    UnsetAttributeNameError,
    UnsetResourceNameError,
    acl,
    args,
    checkpoint,
    depend,
    duration,
    email_list,
    exec_host,
    exec_vnode,
    group_list,
    hold_types,
    job_sort_formula,
    join_path,
    keep_files,
    license_count,
    mail_points,
    node_group_key,
    path_list,
    pbs_env,
    place,
    range,
    route_destinations,
    select,
    size,
    software,
    staging_list,
    state_count,
    user_list,
    vchunk,
    version,
)

# There are many constants. They come from the table in _constants.
globals().update(_constants.exported())

env = pbs_env
#: path of the hook's configuration file, or None; set when a hook begins
hook_config_filename = None
#: entries of pbs.conf; set when a hook begins
pbs_conf = {}


def logmsg(level, message):
    """Writes a line to the daemon's log, under the name of the hook."""
    _current().log(level, None, message)


def logjobmsg(job_id, message):
    """Writes a line to the daemon's log, under the id of the job."""
    _current().log(_constants.LOG_EVENTS["LOG_DEBUG"], str(job_id), message)


def get_hook_config_file():
    """Returns the path of the hook's configuration file; None: the hook has none."""
    return hook_config_filename


def get_pbs_conf():
    """Returns the entries of pbs.conf on this host."""
    return dict(pbs_conf)


def get_local_nodename():
    """Returns the name of this host's natural vnode."""
    return _current().run["input"].get("node", "")


get_local_host_name = get_local_nodename


def get_pbs_server_name():
    return _current().server_name


def reboot(command=None):
    """Ends the hook and reboots the host. command: the command that reboots the host; None: the system's own command."""
    import sys

    _current().request("reboot", command or "")
    sys.exit(0)
