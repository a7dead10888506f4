// Which PBS we are taken for and which Partita this is. Client programs read the first as dotted numbers (docs/reference/clients.md 3 and the JSON of qstat and
// pbsnodes), so it is plainly the version of the PBS whose behaviour we keep; our own version stands in pbs_build and in `partita --version`.

export const PBS_VERSION = "23.06.06";
export const PARTITA_VERSION = "0.1.0";
/** the daemons' log header `pbs_build=` */
export const PBS_BUILD = `partita-${PARTITA_VERSION}`;
