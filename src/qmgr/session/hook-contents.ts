// Import and export of hooks (docs/reference/qmgr.md 9): parses the request and writes the messages for the user. The caller
// supplies files and streams.

import type { ExportHookRequest, ImportHookRequest } from "#protocol/messages.ts";

export type HookRefusal = { readonly ok: false; readonly code: number; readonly text: string | null };
export type HookServer = {
  importHook(request: ImportHookRequest): Promise<{ readonly ok: true; readonly text?: string } | HookRefusal>;
  exportHook(request: ExportHookRequest): Promise<{ readonly ok: true; readonly content: string } | HookRefusal>;
};
/** The files of import and export. All contents are base64. A fault is the line to show. */
export type HookFiles = {
  /** reads a file. `-`: standard input, up to its end, or, if the encoding is base64, up to an empty line */
  read(file: string, encoding: string): Promise<{ readonly content: string } | { readonly fault: string }>;
  /** writes a file; undefined: standard output */
  write(file: string | undefined, encoding: string, content: string): Promise<{ readonly fault?: string }>;
};

export type ContentsWords = { readonly content_type: string; readonly encoding: string; readonly file: string | undefined };

/** Parses the words after the hook's name. If they are wrong, returns the line to show as `fault`. */
export function contentsWords(verb: "import" | "export", words: readonly string[]): ContentsWords | { readonly fault: string } {
  const [content_type, encoding, file, ...more] = words.map(unquoted);
  const missing = (what: string) => ({ fault: `hook ${verb} command has no <${what}> argument` });
  if (content_type === undefined) return missing("content-type");
  if (encoding === undefined) return missing("content-encoding");
  if (file === undefined && verb === "import") return missing("input-file");
  if (more.length > 0) return { fault: `hook ${verb} command has too many arguments` };
  return { content_type, encoding, file };
}

const unquoted = (word: string): string => /^(["'])(.*)\1$/s.exec(word)?.[2] ?? word;

/** Returns the suffix of a file name: `.json` for `/etc/site.json`. A point at the beginning of the name does not begin a suffix. */
const suffixOf = (file: string): string => /[^/](\.[^./]+)$/.exec(file)?.[1] ?? "";

export type Moved =
  | { readonly ok: true; readonly text?: string }
  | { readonly ok: false; readonly fault: string /** no request was sent, or the server's answer could not be written */ }
  | HookRefusal;

export async function importContents(
  server: HookServer,
  files: HookFiles,
  object: "hook" | "pbshook",
  hook: string,
  { content_type, encoding, file = "-" }: ContentsWords,
): Promise<Moved> {
  const found = await files.read(file, encoding);
  if ("fault" in found) return { ok: false, fault: found.fault };
  const suffix = file === "-" || content_type !== "application/x-config" ? "" : suffixOf(file);
  return await server.importHook({ kind: "import-hook", object, hook, content_type, encoding, content: found.content, suffix });
}

export async function exportContents(
  server: HookServer,
  files: HookFiles,
  object: "hook" | "pbshook",
  hook: string,
  { content_type, encoding, file }: ContentsWords,
): Promise<Moved> {
  const reply = await server.exportHook({ kind: "export-hook", object, hook, content_type });
  if (!reply.ok) return reply;
  const { fault } = await files.write(file, encoding, reply.content);
  return fault === undefined ? { ok: true } : { ok: false, fault };
}

/** Returns the last lines of `print hook`: import commands with the contents of the hook, which qmgr can read again. */
export async function printContents(server: HookServer, object: "hook" | "pbshook", hook: string): Promise<string> {
  let text = "";
  for (const content_type of ["application/x-python", "application/x-javascript", "application/x-config"]) {
    const reply = await server.exportHook({ kind: "export-hook", object, hook, content_type });
    if (reply.ok && reply.content !== "") text += `import ${object} ${hook} ${content_type} base64 -\n${base64Lines(reply.content)}\n`;
  }
  return text;
}

const LINE_CHARS = 76;

/** Splits base64 into lines, each with a newline at its end. */
export const base64Lines = (content: string): string => content.replace(new RegExp(`.{1,${LINE_CHARS}}`, "g"), "$&\n");
