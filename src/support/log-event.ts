// Event types of the daemons' logs and their masks (docs/reference/files.md 3). Pure, so that the cores can name events without
// loading the logger.

export const LOG_EVENT = {
  ERROR: 0x0001,
  SYSTEM: 0x0002,
  ADMIN: 0x0004,
  JOB: 0x0008,
  JOB_USAGE: 0x0010,
  SECURITY: 0x0020,
  SCHED: 0x0040,
  DEBUG: 0x0080,
  DEBUG2: 0x0100,
  RESV: 0x0200,
  DEBUG3: 0x0400,
  DEBUG4: 0x0800,
  /** added to an event so that no mask suppresses it. This bit is not written to the log */
  FORCE: 0x8000,
} as const;

/** The default mask of each daemon. */
export const LOG_MASK = { server: 511, sched: 767, mom: 511, comm: 511 } as const;

/** Whether a mask lets an event pass. Errors and events with FORCE always pass. */
export const isLogged = (event: number, mask: number): boolean => (event & (mask | LOG_EVENT.ERROR | LOG_EVENT.FORCE)) !== 0;

export type LogClass = "n/a" | "Svr" | "Que" | "Job" | "Req" | "Fil" | "Act" | "Node" | "Resv" | "Sched" | "Hook" | "Resc" | "TPP";

/** What a log line says, besides its time and its daemon. */
export type LogRecord = { readonly event: number; readonly class: string; readonly object: string; readonly text: string };
