// Values of Exit_status that do not come from the job itself: negative values, and the value for a program that could not be
// executed (docs/reference/execution.md 6).

/** Values that a mom may report. The server knows all of them, although our mom never sends some. */
export const JOB_EXEC = {
  /** the start has failed: FAIL1: before the mom had made the job's files; FAIL2: after that */
  FAIL1: -1,
  FAIL2: -2,
  RETRY: -3,
  /** the job is lost: its end is unknown */
  INITABT: -4,
  /** the job is lost, but a checkpoint exists */
  INITRST: -5,
  INITRMG: -6,
  /** the job could not be restarted from its checkpoint */
  BADRESRT: -7,
  FAILUID: -10,
  RERUN: -11,
  /** the job was checkpointed and then ended */
  CHKP: -12,
  FAIL_PASSWORD: -13,
  RERUN_SIS_FAIL: -14,
  QUERST: -15,
  /**
   * an execution hook rejected the job, or accepted it with rerun() or delete(), or raised an exception, gave
   * no answer, or exceeded its time limit
   */
  FAILHOOK_RERUN: -16,
  FAILHOOK_DELETE: -17,
  HOOK_RERUN: -18,
  HOOK_DELETE: -19,
  RERUN_MS_FAIL: -20,
  FAIL_SECURITY: -21,
  HOOKERROR: -22,
  FAIL_KRB5: -23,
  KILL_NCPUS_BURST: -24,
  KILL_NCPUS_SUM: -25,
  KILL_VMEM: -26,
  KILL_MEM: -27,
  KILL_CPUT: -28,
  KILL_WALLTIME: -29,
  JOINJOB: -30,
} as const;

/** The Exit_status of a job whose program or shell could not be executed. */
export const EXEC_FAILED = 254;
