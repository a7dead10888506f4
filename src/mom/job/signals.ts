// Signals by name (with or without SIG) or number. The numbers are the ones that Linux uses on the supported machines. Pure.

const NUMBERS: { readonly [name: string]: number } = {
  HUP: 1,
  INT: 2,
  QUIT: 3,
  ILL: 4,
  TRAP: 5,
  ABRT: 6,
  IOT: 6,
  BUS: 7,
  FPE: 8,
  KILL: 9,
  USR1: 10,
  SEGV: 11,
  USR2: 12,
  PIPE: 13,
  ALRM: 14,
  TERM: 15,
  STKFLT: 16,
  CHLD: 17,
  CLD: 17,
  CONT: 18,
  STOP: 19,
  TSTP: 20,
  TTIN: 21,
  TTOU: 22,
  URG: 23,
  XCPU: 24,
  XFSZ: 25,
  VTALRM: 26,
  PROF: 27,
  WINCH: 28,
  IO: 29,
  POLL: 29,
  PWR: 30,
  SYS: 31,
};
const NUMBER_MAX = 64;

export const SIG = { HUP: 1, KILL: 9, TERM: 15, CONT: 18, STOP: 19 } as const;

/** Returns the number of a signal, or null if it does not exist. Signal 0 only asks whether the job is alive. */
export function signalNumber(text: string): number | null {
  if (/^\d{1,3}$/.test(text)) return Number(text) <= NUMBER_MAX ? Number(text) : null;
  return NUMBERS[text.toUpperCase().replace(/^SIG/, "")] ?? null;
}
