// The backfilling example of Maui's documents (seeds/003, systems.md 7) and its variants: four nodes of four slots, three
// running jobs, three queued in the order of priority. Times are units; intervals are half-open. backfill-figure.test.ts tests
// a cycle, the live backfill.test.ts a complex.

export type Variant = {
  name: string;
  /** backfill_depth; many: every blocked job gets a plan */
  depth?: number;
  /** Maui's N: the number of queued jobs considered */
  looked_at?: number;
  /** the end of j2 */
  j2?: number;
  /** durations */
  q1?: number;
  q2?: number;
  /** the time, if it is not t0 of the example */
  jobs?: string;
  now?: number;
  published?: Readonly<Record<string, { start_time: number; exec_vnode: string }>>;
  expected: string;
};

const Q0 = "q0 [18,24) n0*4 n1*4";
const Q1 = "q1 [7,15) n1*2 n3*2";

export const VARIANTS: readonly Variant[] = [
  { name: "the figure", expected: `${Q0}; ${Q1}; q2 now n1*4` },
  { name: "q2 takes 7: touching is allowed", q2: 7, expected: `${Q0}; ${Q1}; q2 now n1*4` },
  { name: "q2 takes 8", q2: 8, expected: `${Q0}; ${Q1}; q2 [22,30) n2*4` },
  { name: "q1 takes 11", q1: 11, expected: `${Q0}; q1 [7,18) n1*2 n3*2; q2 now n1*4` },
  { name: "q1 takes 12 and would reach into q0's plan on n1", q1: 12, expected: `${Q0}; q1 [22,34) n2*2 n3*2; q2 now n1*4` },
  { name: "j2 ends at 12", j2: 12, expected: "q0 [12,18) n1*4 n2*4; q1 [18,26) n0*2 n1*2; q2 now n1*4" },
  { name: "j2 ends at 18: a tie, the first nodes win", j2: 18, expected: `${Q0}; ${Q1}; q2 now n1*4` },
  { name: "depth 1", depth: 1, expected: `${Q0}; q2 now n1*4` },
  { name: "depth 1, q2 takes 8", depth: 1, q2: 8, expected: `${Q0}; q2 now n1*4` },
  { name: "depth 1, q2 takes 18", depth: 1, q2: 18, expected: `${Q0}; q2 now n1*4` },
  { name: "depth 1, q2 takes 19 and would reach into q0's plan", depth: 1, q2: 19, expected: Q0 },
  { name: "depth 2, q2 takes 8: no third plan", depth: 2, q2: 8, expected: `${Q0}; ${Q1}` },
  { name: "N=2: q2 is not looked at", looked_at: 2, expected: `${Q0}; ${Q1}` },
  { name: "N=1", looked_at: 1, expected: Q0 },
  { name: "depth 0: nothing starts out of order", depth: 0, expected: "" },
  {
    name: "j1 has ended early, at 3",
    now: 3,
    jobs: "j0 R (n0:ncpus=4) walltime=18; j2 R (n2:ncpus=4)+(n3:ncpus=2) walltime=22; q2 R (n1:ncpus=4) walltime=5",
    published: {
      q0: { start_time: 18, exec_vnode: "(n0:ncpus=4)+(n1:ncpus=4)" },
      q1: { start_time: 7, exec_vnode: "(n1:ncpus=2)+(n3:ncpus=2)" },
    },
    expected: `${Q0}; q1 [5,13) n1*2 n3*2`,
  },
  {
    name: "j0 overruns at 18: planned anew, not lost",
    now: 18,
    jobs: "j0 R (n0:ncpus=4) walltime=18; j2 R (n2:ncpus=4)+(n3:ncpus=2) walltime=22",
    published: { q0: { start_time: 18, exec_vnode: "(n0:ncpus=4)+(n1:ncpus=4)" } },
    expected: "q0 [19,25) n0*4 n1*4; q1 [22,30) n2*2 n3*2",
  },
];
