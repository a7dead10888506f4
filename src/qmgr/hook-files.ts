// Reads and writes the files and streams of import and export, and converts their contents to base64 and back (docs/reference/qmgr.md 9).

import { readFileSync, statSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { LIMITS } from "#protocol/wire/limits.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { base64Lines, type HookFiles } from "./session/hook-contents.ts";

/** The part of standard input that has not been read yet. */
export type Input = {
  /** reads one line; undefined: the input has ended */
  line(): Promise<string | undefined>;
  rest(): Promise<Buffer>;
};

/** Makes the functions for files. input: called only if a file is `-`. */
export function hookFiles(cwd: string, out: (text: string) => void, input: () => Input): HookFiles {
  return {
    async read(file, encoding) {
      if (file === "-") return checked(encoded(await (encoding === "base64" ? paragraph(input()) : input().rest()), encoding));
      const path = resolve(cwd, file);
      try {
        if (!statSync(path).isFile()) return { fault: `${file} - Permission denied` };
        return checked(encoded(readFileSync(path), encoding));
      } catch (error) {
        return { fault: `${file} - ${reason(error)}` };
      }
    },
    async write(file, encoding, content) {
      const base64 = encoding === "base64";
      if (file === undefined || file === "-") {
        out(base64 ? base64Lines(content) : Buffer.from(content, "base64").toString("utf8"));
        return {};
      }
      try {
        writeFileSync(resolve(cwd, file), base64 ? base64Lines(content) : Buffer.from(content, "base64"));
        return {};
      } catch (error) {
        return { fault: `${file} - ${reason(error)}` };
      }
    },
  };
}

const encoded = (bytes: Buffer, encoding: string): string => (encoding === "base64" ? bytes.toString("latin1") : bytes.toString("base64"));

function checked(content: string): { readonly content: string } | { readonly fault: string } {
  return content.length <= LIMITS.hook_chars_max ? { content } : { fault: "the contents are too long for a hook" };
}

/** Reads lines up to the next empty line. */
async function paragraph(input: Input): Promise<Buffer> {
  const lines: string[] = [];
  for (let line = await input.line(); line !== undefined && line.trim() !== ""; line = await input.line()) lines.push(line);
  return Buffer.from(lines.join("\n"));
}

/** Returns an input made of lines, from which the session also reads its requests. */
export function inputOfLines(lines: AsyncIterator<string>): Input {
  const line = async (): Promise<string | undefined> => {
    const { value, done } = await lines.next();
    return done === true ? undefined : value;
  };
  return {
    line,
    async rest() {
      const left: string[] = [];
      for (let next = await line(); next !== undefined; next = await line()) left.push(`${next}\n`);
      return Buffer.from(left.join(""));
    },
  };
}

/** Returns an input made of a stream from which nobody else reads. */
export function inputOfStream(stream: NodeJS.ReadableStream): Input {
  let lines: Input | undefined;
  return {
    line() {
      lines ??= inputOfLines(createInterface({ input: stream, terminal: false })[Symbol.asyncIterator]());
      return lines.line();
    },
    async rest() {
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(Buffer.from(chunk));
      return Buffer.concat(chunks);
    },
  };
}

function reason(error: unknown): string {
  const code = codeOf(error);
  if (code === "ENOENT" || code === "ENOTDIR") return "No such file or directory";
  return code === "EACCES" || code === "EPERM" ? "Permission denied" : messageOf(error);
}
