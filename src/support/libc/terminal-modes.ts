// Modes and window size of terminals, through the C library. The raw mode of Node.js leaves output processing on, which
// breaks full-screen programs.
//
// M1. The C library reads, changes and writes the settings (struct termios). Of their layout, only the position of the
//     control characters is known here.

import { libc } from "./libc.ts";

/** more bytes than any struct termios has */
const TERMIOS_BYTES = 128;
const TCSANOW = 0;
/** applies settings after output written earlier has been sent; unread input stays */
const TCSADRAIN = 1;
const TIOCGWINSZ = 0x5413;
const TIOCSWINSZ = 0x5414;
/**
 * CONTROLS_AT: position of c_cc, which follows four flag words and a line discipline. CONTROL_INDICES: indices in c_cc of interrupt, quit, erase, kill, end of
 * file and suspend.
 */
const CONTROLS_AT = 17;
const CONTROL_INDICES = [0, 1, 2, 3, 4, 10];

export type TerminalSettings = Buffer;

type Native = ReturnType<typeof declare>;
let native: Native | null = null;
const calls = (): Native => {
  native ??= declare();
  return native;
};

function declare() {
  const { koffi, libc: library } = libc();
  return {
    errno: () => koffi.errno(),
    strerror: library.func("const char *strerror(int error)"),
    tcgetattr: library.func("int tcgetattr(int fd, void *settings)"),
    tcsetattr: library.func("int tcsetattr(int fd, int when, void *settings)"),
    cfmakeraw: library.func("void cfmakeraw(void *settings)"),
    ioctl: library.func("int ioctl(int fd, unsigned long request, void *argument)"),
  };
}

function must(what: string, result: unknown): void {
  const { errno, strerror } = calls();
  if (Number(result) !== 0) throw new Error(`${what}: ${String(strerror(errno()))}`);
}

/** Returns the settings of a terminal. Throws if the descriptor is not a terminal. */
export function terminalSettings(fd: number): TerminalSettings {
  const settings = Buffer.alloc(TERMIOS_BYTES);
  must("tcgetattr", calls().tcgetattr(fd, settings));
  return settings;
}

/** Sets the settings of a terminal. drain: only after output written earlier has been sent. */
export function applySettings(fd: number, settings: TerminalSettings, { drain = false } = {}): void {
  must("tcsetattr", calls().tcsetattr(fd, drain ? TCSADRAIN : TCSANOW, settings));
}

/** Returns the settings without any processing: every byte passes unchanged. */
export function rawSettings(settings: TerminalSettings): TerminalSettings {
  const raw = Buffer.from(settings);
  calls().cfmakeraw(raw);
  return raw;
}

/** Returns the character codes of interrupt, quit, erase, kill, end of file and suspend. */
export const controlsOf = (settings: TerminalSettings): number[] => CONTROL_INDICES.map((index) => settings[CONTROLS_AT + index] ?? 0);

/** Returns the settings with these control characters. */
export function withControls(settings: TerminalSettings, controls: readonly number[]): TerminalSettings {
  const changed = Buffer.from(settings);
  CONTROL_INDICES.forEach((index, at) => {
    changed[CONTROLS_AT + index] = controls[at] ?? 0;
  });
  return changed;
}

/** Returns the window size of a terminal. Throws if the descriptor is not a terminal. */
export function windowSize(fd: number): { readonly rows: number; readonly columns: number } {
  const size = new Uint16Array(4);
  must("TIOCGWINSZ", calls().ioctl(fd, TIOCGWINSZ, size));
  return { rows: size[0] ?? 0, columns: size[1] ?? 0 };
}

/** Sets the window size of a pseudo terminal; the descriptor may be of its master or its slave. The kernel notifies the foreground programs (SIGWINCH). */
export function setWindowSize(fd: number, size: { readonly rows: number; readonly columns: number }): void {
  must("TIOCSWINSZ", calls().ioctl(fd, TIOCSWINSZ, Uint16Array.of(size.rows, size.columns, 0, 0)));
}
