// Data about processes of jobs: owners, usage, ends. The folder ../host makes processes and reads these data.

export type FileIdentity = { readonly uid: number; readonly gid: number; readonly groups: readonly number[] };

export type ProcessInfo = {
  readonly pid: number;
  readonly ppid: number;
  readonly session: number;
  /** R S D Z T ... */
  readonly state: string;
  /** cpu time in ticks, of the process itself and of its children that it waited for */
  readonly ticks: number;
  /** start time in ticks since boot */
  readonly start_ticks: number;
  readonly vmem_kb: number;
  readonly rss_pages: number;
};

/**
 * What the kernel knew about a job's processes when the job's control group was removed. null: not known. oom: the kernel killed a process for lack of memory.
 */
export type GroupUsage = { readonly cput_s: number | null; readonly mem_peak_kb: number | null; readonly oom: boolean };

export type WaitStatus = { readonly code: number } | { readonly signal: number };
