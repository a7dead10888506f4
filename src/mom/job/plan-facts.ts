// The facts about this host on which the plan of every job depends: names, directories, programs. Pure.

/** What this host needs to copy files to and from other hosts of the complex. */
export type FarFacts = {
  /** PBS_HOME, which holds the identity of this host */
  readonly home: string;
  /** server: PBS_SERVER. server_host: how this host reaches the server's host. servers: the places where a server may be active */
  readonly server: string;
  readonly server_host: string;
  readonly servers: readonly { readonly host: string; readonly port: number }[];
  /** PBS_MANAGER_SERVICE_PORT: the port at which hosts accept connections for files of jobs */
  readonly port: number;
  /** whether the complex belongs to one user (user mode) */
  readonly own: boolean;
  /** $copy_patience: how long a copy is tried again if it fails for a reason that may pass */
  readonly patience_s: number;
};

export type PlanFacts = {
  /** PBS_HOME (or PBS_MOM_HOME) */
  readonly home: string;
  /** the names and addresses of this machine */
  readonly hosts: readonly string[];
  /** how this host reaches the server's host */
  readonly server_host: string;
  /** $tmpdir: where the TMPDIR of jobs is made */
  readonly tmpdir: string;
  /** $jobdir_root: where PRIVATE sandboxes are made; null: in the owner's home */
  readonly jobdir_root: string | null;
  /** $usecp: [host pattern, path prefix, local prefix] */
  readonly usecp: readonly (readonly [host: string, prefix: string, local: string])[];
  /** null: the site has named a copy program for all hosts */
  readonly far: FarFacts | null;
  /** PBS_SCP and PBS_SCP_ARGS, or PBS_RCP: the program that copies to and from other hosts, with its arguments; an empty list: there is none */
  readonly scp: readonly string[];
  /** PBS_MOMPORT */
  readonly port: number;
  readonly site: readonly (readonly [name: string, value: string])[];
  /** of a runner: variables that name its devices */
  readonly devices?: readonly (readonly [name: string, value: string])[];
  /** PBS_EXEC/bin if the shells' login files do not put it into PATH; null: they do */
  readonly commands: string | null;
};
