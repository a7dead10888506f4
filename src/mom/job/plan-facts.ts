// Facts on which the plans of all jobs on this host depend: names, directories and programs of the host. Pure.

export type PlanFacts = {
  /** PBS_HOME (or PBS_MOM_HOME) */
  readonly home: string;
  /** names of this host */
  readonly hosts: readonly string[];
  /** $tmpdir */
  readonly tmpdir: string;
  /** $jobdir_root; null: the owner's home */
  readonly jobdir_root: string | null;
  /** $usecp: [host pattern, path prefix, local prefix] */
  readonly usecp: readonly (readonly [host: string, prefix: string, local: string])[];
  /** PBS_SCP and PBS_SCP_ARGS: the program that copies to and from other hosts, with its arguments; no words: there is none */
  readonly scp: readonly string[];
  /** PBS_MOMPORT */
  readonly port: number;
  readonly site: readonly (readonly [name: string, value: string])[];
  /** PBS_EXEC/bin if login files do not put it into PATH; null: they do */
  readonly commands: string | null;
};
