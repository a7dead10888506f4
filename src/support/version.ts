// The version of PBS that Partita reports, and the version of Partita. Client programs read the version of PBS as dotted
// numbers (docs/reference/clients.md 3 and the JSON of qstat and pbsnodes), so Partita reports the version of the PBS whose
// behaviour it reproduces. The version of Partita is shown by pbs_build and `partita --version`.

export const PBS_VERSION = "23.06.06";
export const PARTITA_VERSION = "0.1.0";
/** value of `pbs_build=` in the header of the daemons' logs */
export const PBS_BUILD = `partita-${PARTITA_VERSION}`;
