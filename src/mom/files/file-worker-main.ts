// pbs_file_worker: writes and reads the files of one run of a job for another host, as the owner of the job and with no other right. The server of files
// (file-server.ts) starts it, and connects its stdin and stdout with the other host.
//
// W1. The first frame (grant) comes from the server of files and has the paths that the job states. All further frames come from the other host, which can use only
//     these paths and, in directories, only the names that the files of this job have.
// W2. A relative path begins in the home directory of the owner.
// W3. A file that is not complete when the connection ends is removed.
// W4. This process reads no further data before it has written the earlier ones, and sends no faster than the other host takes: it holds one piece of a file.
// W5. A host that goes on to send a file long after this process has refused it is disconnected.

import { readSync, writeSync } from "node:fs";
import { basename } from "node:path";
import { encodeFileFrame, type FileFrame, FileFrameError, fileFrameDecoder } from "#protocol/files/link.ts";
import { messageOf } from "#support/caught.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { isAskedFor, matching } from "./pattern.ts";
import { placeIn } from "./place-in.ts";
import { PIECE_BYTES, treeFrames } from "./tree-source.ts";
import { TreeTarget } from "./tree-target.ts";

const TEXT_CHARS = 1000;
/** Bytes of a refused file that may still be on their way. */
const REFUSED_BYTES_MAX = 64 * 1024 * 1024;
const home = process.env["HOME"] ?? "/";
const uid = process.geteuid?.() ?? 0;
const absolute = (path: string): string => (path.startsWith("/") ? path : `${home}/${path}`);

function send(frame: FileFrame): void {
  const bytes = encodeFileFrame(frame);
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
}

const failed = (error: unknown): void => send({ kind: "failed", text: messageOf(error).slice(0, TEXT_CHARS), again: false });

/** A tree that the other host sends. target null: it could not be written, and its remaining frames are ignored. */
type Put = { target: TreeTarget | null; refused_bytes: number };
type State = { put: Put | null };
type Grant = FileFrame & { readonly kind: "grant" };

function serve(grant: Grant, state: State, frame: FileFrame): void {
  if (state.put !== null) return putFurther(state, state.put, frame);
  switch (frame.kind) {
    case "put":
      return begin(grant, state, frame);
    case "get":
      return give(grant, frame.path);
    default:
      throw new FileFrameError(`a frame ${frame.kind}`);
  }
}

function begin(grant: Grant, state: State, { path, name }: FileFrame & { readonly kind: "put" }): void {
  state.put = { target: null, refused_bytes: 0 };
  try {
    const index = grant.put.indexOf(path);
    if (index < 0) throw new Error(`the job states no place ${path} for its files on this host`);
    const stated = absolute(path);
    const place = placeIn(stated, name);
    const names = grant.names?.[index];
    if (place !== stated && names !== undefined && !names.some((each) => isAskedFor(each, name)))
      throw new Error(`the job has no file ${name} for ${path}`);
    state.put.target = new TreeTarget(place, uid, place === stated);
  } catch (error) {
    failed(error);
  }
}

function putFurther(state: State, put: Put, frame: FileFrame): void {
  const { target } = put;
  try {
    switch (frame.kind) {
      case "file":
      case "dir":
      case "link":
        return target?.add(frame);
      case "data":
        if (target !== null) return target.data(frame.bytes);
        put.refused_bytes += frame.bytes.length;
        if (put.refused_bytes > REFUSED_BYTES_MAX) throw new FileFrameError("more of a refused file");
        return;
      case "end":
        state.put = null;
        if (target === null) return;
        target.end();
        return send({ kind: "done" });
      default:
        throw new FileFrameError(`a frame ${frame.kind}`);
    }
  } catch (error) {
    target?.abort();
    put.target = null;
    if (error instanceof FileFrameError) throw error;
    failed(error);
  }
}

function give(grant: Grant, path: string): void {
  try {
    if (!grant.get.includes(path)) throw new Error(`the job names no files ${path} of this host`);
    for (const found of matching(absolute(path))) {
      send({ kind: "name", name: basename(found) });
      for (const frame of treeFrames(found)) send(frame);
    }
    send({ kind: "end" });
  } catch (error) {
    failed(error);
  }
}

function main(): void {
  closeForeignDescriptors();
  process.chdir("/");
  process.umask(0);
  const decoder = fileFrameDecoder();
  const piece = Buffer.alloc(PIECE_BYTES);
  const state: State = { put: null };
  let grant: Grant | null = null;
  try {
    for (let count = readSync(0, piece); count > 0; count = readSync(0, piece)) {
      for (const frame of decoder.push(piece.subarray(0, count))) {
        if (grant !== null) serve(grant, state, frame);
        else if (frame.kind === "grant") {
          grant = frame;
          send({ kind: "ready" });
        } else throw new FileFrameError("no grant");
      }
    }
  } catch {
    // The other host breaks the rules, or the connection has ended: nobody is left who could be told.
    process.exitCode = 1;
  }
  state.put?.target?.abort();
}

main();
