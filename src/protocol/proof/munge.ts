// MUNGE through its library (libmunge, koffi): a credential proves the uid and gid of the process that made it to every host
// with the same key. Loaded only when a user of another host must be proved.
//
// M1. Calls block on munged, so they run on threads of libuv's pool, a few at a time: libmunge refuses about a thousand at once, and the pool also serves the store.
// M2. A credential counts only if munged accepts it in full. munged remembers credentials and refuses a second use (EMUNGE_CRED_REPLAYED).

import type koffiModule from "koffi";
import { libc } from "#support/libc/libc.ts";

/** The error if a call failed or a credential was refused. Its message says why. is_own: the cause lies on this host and not in the credential. */
export class MungeError extends Error {
  override readonly name = "MungeError";
  readonly is_own: boolean;

  constructor(message: string, is_own: boolean, cause?: unknown) {
    super(message, { cause });
    this.is_own = is_own;
  }
}

export type MungeUser = { readonly uid: number; readonly gid: number; readonly payload: string };

export type Munge = {
  /** Makes a credential of this process. Rejects with MungeError. */
  encode(payload: string): Promise<string>;
  /** Checks a credential. Rejects with MungeError. */
  decode(credential: string): Promise<MungeUser>;
};

export type MungeOptions = {
  /** munged's socket; null: the default of libmunge */
  readonly socket: string | null;
  /** largest numbers of calls under way (M1) and of calls that wait for them; further calls are refused */
  readonly calls_max: number;
  readonly waiting_max: number;
};

/** Constants of munge.h: options of a context, and results. */
const OPT_SOCKET = 8;
const OPT_UID_RESTRICTION = 9;
const SUCCESS = 0;
/** Results of munge_decode that do not depend on the credential: an internal error, no memory, munged does not answer (munge.h). */
const OWN_RESULTS: ReadonlySet<number> = new Set([1, 2, 5, 6, 7]);
/** Results about the credential, not about the call: their texts in the library name no file. */
const CREDENTIAL_TEXT: Readonly<Record<number, string>> = {
  15: "the credential has expired: compare the clocks of both hosts",
  16: "the credential is from the future: compare the clocks of both hosts",
  17: "the credential was used before",
};
/** The user for whom credentials are made: only this user can check them. Where MUNGE is used, the server runs as root. */
const SERVER_UID = 0;

type Koffi = typeof koffiModule;
type Pointer = unknown;
type Done = (error: unknown, result: number) => void;
type AsyncCall<A extends readonly unknown[]> = { async(...args: [...A, Done]): void };

type Library = {
  readonly koffi: Koffi;
  readonly create: () => Pointer;
  readonly set: (context: Pointer, option: number, type: string, value: string | number) => number;
  readonly destroy: (context: Pointer) => void;
  readonly textOf: (context: Pointer) => string | null;
  readonly encode: AsyncCall<[Pointer[], Pointer, Buffer, number]>;
  readonly decode: AsyncCall<[string, Pointer, Pointer[], number[], number[], number[]]>;
  readonly free: (memory: Pointer) => void;
};

let loaded: Library | null = null;

/** Returns the library, which is loaded at the first call. Throws MungeError if it is missing. */
function library(): Library {
  if (loaded !== null) return loaded;
  const { koffi, libc: c } = libc();
  let munge: ReturnType<Koffi["load"]>;
  try {
    munge = koffi.load("libmunge.so.2");
  } catch (error) {
    throw new MungeError("libmunge.so.2 cannot be loaded: MUNGE is not installed on this host", true, error);
  }
  loaded = {
    koffi,
    create: munge.func("void *munge_ctx_create(void)"),
    set: munge.func("int munge_ctx_set(void *context, int option, ...)"),
    destroy: munge.func("void munge_ctx_destroy(void *context)"),
    textOf: munge.func("const char *munge_ctx_strerror(void *context)"),
    encode: munge.func("int munge_encode(_Out_ void **credential, void *context, const uint8_t *payload, int length)"),
    decode: munge.func(
      "int munge_decode(const char *credential, void *context, _Out_ void **payload, _Out_ int *length, _Out_ uint32_t *uid, _Out_ uint32_t *gid)",
    ),
    free: c.func("void free(void *memory)"),
  };
  return loaded;
}

/** Opens MUNGE. The library is loaded at the first call. */
export function openMunge(options: MungeOptions): Munge {
  const inTurn = turns(options);
  const within = <T>(work: (lib: Library, context: Pointer) => Promise<T>): Promise<T> =>
    inTurn(async () => {
      const lib = library();
      const context = lib.create();
      try {
        if (options.socket !== null) lib.set(context, OPT_SOCKET, "str", options.socket);
        return await work(lib, context);
      } finally {
        lib.destroy(context);
      }
    });
  return {
    encode: (payload) =>
      within(async (lib, context) => {
        lib.set(context, OPT_UID_RESTRICTION, "unsigned int", SERVER_UID);
        const bytes = Buffer.from(payload);
        const credential: Pointer[] = [null];
        const result = await called((done) => lib.encode.async(credential, context, bytes, bytes.length, done));
        const text = taken<string>(lib, credential, (memory) => lib.koffi.decode(memory, "char", -1));
        if (result !== SUCCESS || text === null) throw failure(lib, context, result);
        return text;
      }),
    decode: (credential) =>
      within(async (lib, context) => {
        const payload: Pointer[] = [null];
        const length = [0];
        const uid = [0];
        const gid = [0];
        const result = await called((done) => lib.decode.async(credential, context, payload, length, uid, gid, done));
        const bytes = taken<Buffer>(lib, payload, (memory) => Buffer.from(lib.koffi.decode(memory, "uint8_t", length[0] ?? 0)));
        if (result !== SUCCESS) throw failure(lib, context, result);
        return { uid: uid[0] ?? 0, gid: gid[0] ?? 0, payload: bytes?.toString("utf8") ?? "" };
      }),
  };
}

const called = (call: (done: Done) => void): Promise<number> =>
  new Promise((resolve, reject) => call((error, result) => (error === null || error === undefined ? resolve(result) : reject(error))));

/** Reads what the library allocated, and frees it. null: it allocated nothing. */
function taken<T>(lib: Library, [memory]: Pointer[], read: (memory: Pointer) => T): T | null {
  if (memory === null || memory === undefined) return null;
  try {
    return read(memory);
  } finally {
    lib.free(memory);
  }
}

const failure = (lib: Library, context: Pointer, result: number): MungeError =>
  new MungeError(CREDENTIAL_TEXT[result] ?? lib.textOf(context) ?? `error ${result} of libmunge`, OWN_RESULTS.has(result));

/** Runs at most calls_max calls at a time, in the order in which they were requested. */
function turns({ calls_max, waiting_max }: Pick<MungeOptions, "calls_max" | "waiting_max">) {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= calls_max) {
      if (waiting.length >= waiting_max) throw new MungeError("too many credentials wait to be checked", true);
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else running++;
    try {
      return await work();
    } finally {
      // The call that has waited longest takes the place of this one.
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
