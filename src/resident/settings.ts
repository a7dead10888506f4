// The limits of a resident. They are keys of pbs.conf. The launcher that starts the resident reads these and passes them on
// as environment variables (native/launcher.c).

export type Settings = {
  /** PARTITA_RESIDENT_IDLE: the resident ends after this many seconds without a command */
  readonly idle_s: number;
  /** PARTITA_RESIDENT_COMMANDS: the resident ends after this many commands */
  readonly commands_max: number;
  /** PARTITA_RESIDENT_MEMORY: if the resident uses more MB of memory than this, it accepts no more commands and ends after those that run */
  readonly memory_mb_max: number;
  /** PARTITA_RESIDENT_AT_ONCE: number of commands that may run at the same time; further commands run in processes of their own */
  readonly at_once_max: number;
};

export const SETTINGS_DEFAULT: Settings = { idle_s: 120, commands_max: 10_000, memory_mb_max: 400, at_once_max: 64 };
const KEYS: Readonly<Record<keyof Settings, string>> = {
  idle_s: "PARTITA_RESIDENT_IDLE",
  commands_max: "PARTITA_RESIDENT_COMMANDS",
  memory_mb_max: "PARTITA_RESIDENT_MEMORY",
  at_once_max: "PARTITA_RESIDENT_AT_ONCE",
};
/** Largest value that counts. A larger one counts as missing; no sensible value is so large. */
const NUMBER_MAX = 86_400_000;

/** Reads the limits from the environment. A value that is not a whole number above 0 counts as missing. */
export function settingsOf(env: Readonly<Record<string, string | undefined>>): Settings {
  const numbers = (Object.keys(KEYS) as (keyof Settings)[]).map((key) => {
    const text = env[KEYS[key]] ?? "";
    const number = /^\d{1,8}$/.test(text) ? Number(text) : 0;
    return [key, number > 0 && number <= NUMBER_MAX ? number : SETTINGS_DEFAULT[key]] as const;
  });
  return Object.fromEntries(numbers) as Settings;
}
