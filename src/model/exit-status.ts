// Exit_status below zero, and the one for what could not be executed: why there is no exit value of the job's own (docs/reference/execution.md 6).

/** What a mom reports. Some are given by no mom of ours; the server knows them all. */
export const JOB_EXEC = {
  /** failed before and after its files were set up */
  FAIL1: -1,
  FAIL2: -2,
  RETRY: -3,
  /** lost: its end is unknown */
  INITABT: -4,
  /** lost, but there is a checkpoint */
  INITRST: -5,
  INITRMG: -6,
  /** could not be restarted from its checkpoint */
  BADRESRT: -7,
  FAILUID: -10,
  RERUN: -11,
  /** checkpointed, and ended because of that */
  CHKP: -12,
  FAIL_PASSWORD: -13,
  RERUN_SIS_FAIL: -14,
  QUERST: -15,
  /** hooks of execution events: rejected, or accepted with rerun() or delete(); an exception, no answer, or the alarm */
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

/** The program or shell could not be executed. */
export const EXEC_FAILED = 254;
