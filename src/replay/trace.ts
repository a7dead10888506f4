// Traces in the Standard Workload Format and files of reservations, as text. Which jobs count and what a field means: workloads/CONVENTIONS.txt of the
// shared material, restated here.

export type TraceJob = {
  /** field 1 */
  readonly id: number;
  readonly submit_s: number;
  /** allocated processors (field 5), else requested ones (field 8) */
  readonly procs: number;
  /** requested time (field 9), else the run time: all that a scheduler knows */
  readonly est_s: number;
  /** run time, cut at the requested time */
  readonly run_s: number;
  /** field 16; -1: none */
  readonly partition: number;
};

export type TraceReservation = { readonly start_s: number; readonly duration_s: number; readonly procs: number };

/** A line that cannot be understood: its number and what is wrong. */
export class TraceError extends Error {}

/** Jobs of a trace that are not replayed: how many have no run time or no processors, how many want more processors than there are. */
export type LeftOut = { nothing: number; too_wide: number };

/**
 * The jobs of a trace in the order of submission, then of lines. Left out, and counted: jobs without run time or processors, and those with more
 * processors than procs_max says.
 */
export function parseTrace(
  text: string,
  procs_max: number | ((job: TraceJob) => number),
  left_out: LeftOut = { nothing: 0, too_wide: 0 },
): TraceJob[] {
  const most = typeof procs_max === "number" ? (): number => procs_max : procs_max;
  const jobs: TraceJob[] = [];
  let [number, from] = [0, 0];
  while (from < text.length) {
    let to = text.indexOf("\n", from);
    if (to < 0) to = text.length;
    number++;
    const line = text.slice(from, to).trim();
    from = to + 1;
    if (line === "" || line.startsWith(";")) continue;
    const job = parseJob(line, number);
    if (!(job.run_s > 0 && job.procs > 0)) left_out.nothing++;
    else if (job.procs > most(job)) left_out.too_wide++;
    else jobs.push(job);
  }
  // sort is stable: lines keep their order
  return jobs.sort((a, b) => a.submit_s - b.submit_s);
}

const FIELDS = 18;
/** Fields used: 1 job, 2 submit, 4 run time, 5 allocated processors, 8 requested processors, 9 requested time, 16 partition. */
function parseJob(line: string, number: number): TraceJob {
  const fields = line.split(/\s+/);
  if (fields.length < FIELDS) throw new TraceError(`line ${number}: ${fields.length} fields instead of ${FIELDS}`);
  const field = (at: number): number => {
    const value = Number(fields[at - 1]);
    if (!Number.isFinite(value)) throw new TraceError(`line ${number}: field ${at} is no number: ${fields[at - 1]}`);
    return value;
  };
  const [run, allocated, requested_s] = [field(4), field(5), field(9)];
  const est_s = requested_s > 0 ? requested_s : run;
  return {
    id: field(1),
    submit_s: field(2),
    procs: allocated > 0 ? allocated : field(8),
    est_s,
    run_s: Math.min(run, est_s),
    partition: field(16),
  };
}

/** Lines `start_s,duration_s,procs`; empty lines, `#` comments and a heading are skipped. */
export function parseReservations(text: string): TraceReservation[] {
  return text.split("\n").flatMap((raw, at) => {
    const line = raw.replace(/#.*/, "").trim();
    if (line === "" || (at === 0 && /^[a-z]/i.test(line))) return [];
    const [start_s, duration_s, procs, ...rest] = line.split(",").map((word) => (/^\s*\d+\s*$/.test(word) ? Number(word) : Number.NaN));
    if (start_s === undefined || duration_s === undefined || procs === undefined || rest.length > 0 || !(start_s + duration_s + procs >= 0))
      throw new TraceError(`reservations, line ${at + 1}: not start_s,duration_s,procs: ${line}`);
    return [{ start_s, duration_s, procs }];
  });
}
