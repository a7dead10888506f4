"""The Python interface to PBS's batch interface library (pbs_connect, pbs_statjob, ...).

It cannot be used yet, because it needs the C library libpbs, which Partita does not have. The commands do the same and have output for programs:
qstat -f -F json, pbsnodes -a -F json, qselect, qsub, qalter, qdel, qmgr -c.
"""

raise ImportError(
    "pbs_ifl needs the C library libpbs, which Partita does not have yet; use the commands (qstat -f -F json, pbsnodes -a -F json, qmgr -c, ...)"
)
