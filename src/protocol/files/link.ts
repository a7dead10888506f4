// Frames between hosts that carry files of jobs: output, stagein and stageout (docs/files.md). Pure.
//
//   the host where the job runs connects to the other one · open -> ready · put, entries, end -> done · get -> entries, end · and so on · instead of an answer:
//   failed
//   entries: file, data..., or dir, or link; before the entries of each path that a pattern of get names: name
//
// F1. A frame is a kind (1 byte), a length (4 bytes, big-endian) and that many bytes. All kinds other than data contain JSON.
// F2. A decoder stores at most one frame of the largest size, and copies each byte once, however small the pieces are. A peer that breaks the rules is disconnected.
// F3. No path of an entry leads out of the tree: each consists of plain names.

import { isRecord, isTextList } from "#support/guards.ts";

/** An entry of a tree: a directory, a link or a file. path: relative to the top of the tree; "": the top itself. */
export type Entry =
  | { readonly kind: "file"; readonly path: string; readonly size: number; readonly mode: number; readonly mtime_s: number }
  | { readonly kind: "dir"; readonly path: string; readonly mode: number; readonly mtime_s: number }
  | { readonly kind: "link"; readonly path: string; readonly target: string };

export type FileFrame =
  | Entry
  /** a piece of the contents of the file whose entry came last */
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  /** first frame: the run to which the files belong */
  | { readonly kind: "open"; readonly job: string; readonly run_count: number }
  | { readonly kind: "ready" }
  /** writes a file or a tree to a path of the receiver. name: the name of the file or tree in the directory `path`; used only if `path` is a directory */
  | { readonly kind: "put"; readonly path: string; readonly name: string }
  /** asks for the files that a path or pattern of the receiver names */
  | { readonly kind: "get"; readonly path: string }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "end" }
  | { readonly kind: "done" }
  /** again: the reason may pass, so that a later attempt makes sense */
  | { readonly kind: "failed"; readonly text: string; readonly again: boolean }
  /** from the server of files to its worker: what the run may do (FilesGrant) */
  | {
      readonly kind: "grant";
      readonly put: readonly string[];
      readonly names?: readonly (readonly string[])[];
      readonly get: readonly string[];
    };

const KINDS = ["data", "open", "ready", "put", "get", "name", "file", "dir", "link", "end", "done", "failed", "grant"] as const;
const HEADER_BYTES = 5;
export const FILE_FRAME_BYTES_MAX = 256 * 1024;
const PATH_CHARS_MAX = 4096;
const NAME_CHARS_MAX = 255;
const TEXT_CHARS_MAX = 2000;
const DEPTH_MAX = 100;
const JOB_CHARS_MAX = 1024;

export class FileFrameError extends Error {
  override readonly name = "FileFrameError";
}

/** Encodes a frame. Its data must not be longer than FILE_FRAME_BYTES_MAX. */
export function encodeFileFrame(frame: FileFrame): Buffer {
  const number = KINDS.indexOf(frame.kind);
  if (frame.kind === "data") return withHeader(number, frame.bytes);
  const { kind: _, ...fields } = frame;
  return withHeader(number, Buffer.from(JSON.stringify(fields)));
}

function withHeader(number: number, bytes: Uint8Array): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(number, 0);
  header.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([header, bytes]);
}

export type FileFrameDecoder = {
  /** Takes a piece of the stream. Returns the frames that it completes. Throws FileFrameError. */
  push(piece: Uint8Array): FileFrame[];
  /** Returns the first frame if it is complete, without decoding further ones. */
  first(piece: Uint8Array): FileFrame | null;
  /** what follows the first frame in the piece that completed it */
  rest(): Buffer;
};

export function fileFrameDecoder(): FileFrameDecoder {
  const header = Buffer.alloc(HEADER_BYTES);
  let header_bytes = 0;
  /** the contents of the frame whose header is complete; null: no header is */
  let body: Buffer | null = null;
  let body_bytes = 0;
  let piece: Uint8Array = NO_BYTES;
  /** Moves bytes of the piece to a buffer that has `filled` bytes. Returns how many it has then. */
  const fill = (target: Buffer, filled: number): number => {
    const taken = piece.subarray(0, target.length - filled);
    target.set(taken, filled);
    piece = piece.subarray(taken.length);
    return filled + taken.length;
  };
  const take = (): FileFrame | null => {
    if (body === null) {
      header_bytes = fill(header, header_bytes);
      if (header_bytes < HEADER_BYTES) return null;
      const length = header.readUInt32BE(1);
      if (length > FILE_FRAME_BYTES_MAX) throw new FileFrameError(`a frame of ${length} bytes`);
      body = Buffer.allocUnsafe(length);
      body_bytes = 0;
    }
    body_bytes = fill(body, body_bytes);
    if (body_bytes < body.length) return null;
    const frame = decode(header.readUInt8(0), body);
    body = null;
    header_bytes = 0;
    return frame;
  };
  return {
    push(next) {
      piece = next;
      const frames: FileFrame[] = [];
      for (let frame = take(); frame !== null; frame = take()) frames.push(frame);
      return frames;
    },
    first(next) {
      piece = next;
      return take();
    },
    rest: () => Buffer.from(piece),
  };
}
const NO_BYTES = new Uint8Array(0);

function decode(number: number, bytes: Buffer): FileFrame {
  const kind = KINDS[number];
  if (kind === undefined) throw new FileFrameError(`a frame of kind ${number}`);
  if (kind === "data") return { kind, bytes };
  const fields = fieldsIn(bytes);
  switch (kind) {
    case "ready":
    case "end":
    case "done":
      return { kind };
    case "open":
      return { kind, job: text(fields, "job", JOB_CHARS_MAX), run_count: whole(fields, "run_count") };
    case "put":
      return { kind, path: pathIn(fields, "path"), name: plainName(text(fields, "name", NAME_CHARS_MAX)) };
    case "get":
      return { kind, path: pathIn(fields, "path") };
    case "name":
      return { kind, name: plainName(text(fields, "name", NAME_CHARS_MAX)) };
    case "file":
      return { kind, path: inner(fields), size: whole(fields, "size"), mode: whole(fields, "mode"), mtime_s: whole(fields, "mtime_s") };
    case "dir":
      return { kind, path: inner(fields), mode: whole(fields, "mode"), mtime_s: whole(fields, "mtime_s") };
    case "link":
      return { kind, path: inner(fields), target: pathIn(fields, "target") };
    case "failed":
      return { kind, text: text(fields, "text", TEXT_CHARS_MAX), again: fields["again"] === true };
    case "grant":
      return { kind, put: texts(fields, "put"), get: texts(fields, "get"), ...namesIn(fields) };
  }
}

type Fields = { readonly [name: string]: unknown };

function fieldsIn(bytes: Buffer): Fields {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    if (isRecord(value)) return value;
  } catch {
    // the error after the catch is thrown
  }
  throw new FileFrameError("a frame that is not JSON");
}

function text(fields: Fields, name: string, chars_max: number): string {
  const value = fields[name];
  if (typeof value !== "string" || value.length > chars_max) throw new FileFrameError(`a frame without ${name}`);
  return value;
}

function texts(fields: Fields, name: string): readonly string[] {
  const value = fields[name];
  if (!Array.isArray(value) || !value.every((each) => typeof each === "string")) throw new FileFrameError(`a frame without ${name}`);
  return value;
}

function namesIn(fields: Fields): { readonly names?: readonly (readonly string[])[] } {
  const value = fields["names"];
  if (value === undefined) return {};
  if (!Array.isArray(value) || !value.every(isTextList)) throw new FileFrameError("a frame without names");
  return { names: value };
}

function whole(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw new FileFrameError(`a frame without ${name}`);
  return value;
}

function pathIn(fields: Fields, name: string): string {
  const path = text(fields, name, PATH_CHARS_MAX);
  if (path === "" || path.includes("\0")) throw new FileFrameError(`a frame without ${name}`);
  return path;
}

/** Returns the path of an entry. Throws an error if it breaks F3. */
function inner(fields: Fields): string {
  const path = text(fields, "path", PATH_CHARS_MAX);
  if (path === "") return path;
  const names = path.split("/");
  if (names.length > DEPTH_MAX) throw new FileFrameError("a tree that is too deep");
  for (const name of names) plainName(name);
  return path;
}

function plainName(name: string): string {
  if (name === "" || name === "." || name === ".." || name.length > NAME_CHARS_MAX || /[/\0]/.test(name))
    throw new FileFrameError("a name that is none");
  return name;
}
