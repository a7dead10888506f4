// Module `logger`: limits the growth of the scheduler's log files. A file that is too large is rotated (renamed, so that a
// new one begins). A file that is no longer written is compressed. A file that is too old is removed. tracejob reads rotated
// and compressed files.

import { constants, lstatSync, readdirSync, renameSync } from "node:fs";
import { type FileHandle, open, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { messageOf } from "#support/caught.ts";
import { localStamper } from "#support/local-time.ts";
import { logPieces, parseLogName } from "#support/log-pieces.ts";
import type { ModuleWorld, OptionRow, ServiceModule } from "../../shapes/module.ts";
import { optionReader } from "./options.ts";

const OPTIONS: readonly OptionRow[] = [
  { name: "size_max", default: "100mb", help: "a file larger than this is rotated; 0b: never" },
  { name: "gzip", default: "True", help: "rotated files and those of former days are compressed" },
  { name: "keep_days", default: "0", help: "files of so many days are kept; 0: all" },
];
const HOUSEKEEPING_MS = 3_600_000;
const DAY_MS = 86_400_000;

export function logger(world: ModuleWorld): ServiceModule {
  const options = optionReader(OPTIONS, world.options);
  const size_max = options.size("size_max");
  const gzip = options.boolean("gzip");
  const keep_days = options.whole("keep_days");
  const stamper = localStamper(false);
  let kept_house_ms = Number.NEGATIVE_INFINITY;

  /** Renames the file to the next number of its day if it is too large. Returns true if it was renamed. */
  function rotate(): boolean {
    const path = world.log_file.path();
    if (size_max === 0 || sizeOf(path) <= size_max) return false;
    const names = readdirSync(dirname(path));
    const prefix = `${basename(path)}.`;
    const numbers = names.flatMap((name) => (name.startsWith(prefix) ? Number(/^\d+/.exec(name.slice(prefix.length))?.[0] ?? 0) : []));
    renameSync(path, `${path}.${1 + Math.max(0, ...numbers)}`);
    world.log_file.reopen();
    return true;
  }

  async function keepHouse(): Promise<void> {
    const directory = dirname(world.log_file.path());
    const faults: string[] = [];
    const oldest = keep_days === 0 ? "" : stamper.day(world.now_ms() - keep_days * DAY_MS);
    for (const { name, day, compressed } of logPieces(readdirSync(directory))) {
      const path = join(directory, name);
      try {
        if (day < oldest) await unlink(path);
        else if (gzip && !compressed && path !== world.log_file.path()) await compress(path);
      } catch (error) {
        faults.push(`${name}: ${messageOf(error)}`);
      }
    }
    world.problem(faults.length === 0 ? null : `old logs: ${faults.join(", ")}`);
  }

  return {
    kind: "service",
    name: "logger",
    options: OPTIONS,
    async cycle() {
      const rotated = rotate();
      // With -L, other files in the directory may not be logs of this scheduler.
      if (world.log_file.fixed || (!rotated && world.now_ms() - kept_house_ms < HOUSEKEEPING_MS)) return;
      kept_house_ms = world.now_ms();
      await keepHouse();
    },
  };
}

function sizeOf(path: string): number {
  try {
    const stat = lstatSync(path);
    return stat.isFile() ? stat.size : 0;
  } catch {
    return 0;
  }
}

/** Replaces a file by its compressed copy. */
async function compress(path: string): Promise<void> {
  const part = `${path}.gz.part`;
  await unlink(part).catch(() => undefined);
  let from: FileHandle | null = null;
  let to: FileHandle | null = null;
  try {
    from = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = await from.stat();
    if (!stat.isFile() || parseLogName(basename(path)) === null) return;
    to = await open(part, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, stat.mode & 0o777);
    await pipeline(from.createReadStream({ autoClose: false }), createGzip(), (chunks) => writeAll(chunks, to as FileHandle));
    await to.utimes(stat.atime, stat.mtime);
    await to.sync();
    await rename(part, `${path}.gz`);
    await unlink(path);
  } catch (error) {
    await unlink(part).catch(() => undefined);
    throw error;
  } finally {
    await from?.close();
    await to?.close();
  }
}

async function writeAll(chunks: AsyncIterable<Buffer>, to: FileHandle): Promise<void> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) at += (await to.write(chunk, at)).bytesWritten;
  }
}
