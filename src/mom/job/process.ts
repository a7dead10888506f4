// Processes of jobs as data: owners, usage, ends. ../host makes and reads them.

export type FileIdentity = { readonly uid: number; readonly gid: number; readonly groups: readonly number[] };

export type ProcessInfo = {
  readonly pid: number;
  readonly ppid: number;
  readonly session: number;
  /** R S D Z T ... */
  readonly state: string;
  /** cpu ticks of itself and of its children that were waited for */
  readonly ticks: number;
  /** start time in ticks since boot */
  readonly start_ticks: number;
  readonly vmem_kb: number;
  readonly rss_pages: number;
};

/** The kernel's knowledge of a job's processes when its group was removed. null: unknown. */
export type GroupUsage = { readonly cput_s: number | null; readonly mem_peak_kb: number | null; readonly oom: boolean };

export type WaitStatus = { readonly code: number } | { readonly signal: number };
