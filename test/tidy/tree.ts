// The files of the checkout for the tidy tests: files that are tracked or could be added, with their imports and with their
// code without comments and strings.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

export type Import = { readonly specifier: string; readonly line: number; readonly typeOnly: boolean };

export type SourceFile = {
  /** relative to the checkout */
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
};

const NOT_TEXT = /\.(png|jpg|gz|node|db)$/;

let cached: readonly SourceFile[] | undefined;

/** Every text file of the project, sorted by path. */
export function allFiles(): readonly SourceFile[] {
  cached ??= listPaths()
    .filter((path) => !NOT_TEXT.test(path))
    .map((path) => {
      const text = readFileSync(join(ROOT, path), "utf8");
      return { path, text, lines: text.split("\n") };
    });
  return cached;
}

/** Source files below the folders. */
export function sources(...folders: readonly string[]): readonly SourceFile[] {
  return allFiles().filter(({ path }) => /\.tsx?$/.test(path) && folders.some((folder) => path.startsWith(`${folder}/`)));
}

function listPaths(): readonly string[] {
  const paths = fromGit() ?? walk("");
  return paths.filter((path) => existsSync(join(ROOT, path)) && statSync(join(ROOT, path)).isFile()).sort();
}

function fromGit(): readonly string[] | undefined {
  try {
    const args = ["-c", `safe.directory=${ROOT}`, "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    return execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
      .split("\0")
      .filter(Boolean);
  } catch {
    return undefined;
  }
}

/** Without git (a source archive): everything except the results of installation and build. */
function walk(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return ["node_modules", "dist", ".git"].includes(entry.name) ? [] : walk(path);
    return [path];
  });
}

const IMPORT = /^\s*(?:import|export)\s+(type\s+)?(?:[^"';]*?\bfrom\s+)?"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)/gm;

/** Static and dynamic imports and re-exports. */
export function importsOf(file: SourceFile): readonly Import[] {
  const matches = [...file.text.matchAll(IMPORT)].filter((match) => !match[0].includes("$"));
  return matches.map((match) => ({
    specifier: match[2] ?? match[3] ?? "",
    line: file.text.slice(0, match.index + match[0].search(/\S/)).split("\n").length,
    typeOnly: match[1] !== undefined,
  }));
}

/** The file of the project that an import names; undefined for packages and node's own modules. */
export function resolveImport(from: string, specifier: string): string | undefined {
  if (specifier.startsWith("#")) return `src/${specifier.slice(1)}`;
  if (specifier.startsWith(".")) return normalize(join(dirname(from), specifier));
  return undefined;
}

/** Code alone: comments, texts of strings and templates, and regular expressions become blanks; line numbers stay. */
export function codeOf(text: string): string {
  return scan(text, 0, false).code;
}

type Scanned = { readonly code: string; readonly end: number };

/** Scans code from `start`, up to the `}` that closes a template's expression when `inTemplate`. */
function scan(text: string, start: number, inTemplate: boolean): Scanned {
  let code = "";
  let depth = 0;
  let at = start;
  const take = (scanned: Scanned): void => {
    code += scanned.code;
    at = scanned.end;
  };
  while (at < text.length) {
    const char = text.charAt(at);
    const pair = text.slice(at, at + 2);
    if (pair === "//") take(blank(text, at, endOf(text, "\n", at)));
    else if (pair === "/*") take(blank(text, at, endOf(text, "*/", at + 2) + 2));
    else if (char === '"' || char === "'") take(blank(text, at, quotedEnd(text, at)));
    else if (char === "`") take(template(text, at));
    else if (char === "/" && startsExpression(code)) take(blank(text, at, regexEnd(text, at)));
    else if (inTemplate && char === "}" && depth === 0) return { code, end: at };
    else {
      if (char === "{") depth += 1;
      if (char === "}") depth -= 1;
      code += char;
      at += 1;
    }
  }
  return { code, end: at };
}

function endOf(text: string, what: string, from: number): number {
  const found = text.indexOf(what, from);
  return found === -1 ? text.length : found;
}

function blank(text: string, from: number, to: number): Scanned {
  return { code: text.slice(from, to).replace(/[^\n]/g, " "), end: to };
}

function quotedEnd(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text.charAt(at) !== text.charAt(from)) at += text.charAt(at) === "\\" ? 2 : 1;
  return at + 1;
}

function template(text: string, from: number): Scanned {
  let code = " ";
  let at = from + 1;
  while (at < text.length && text.charAt(at) !== "`") {
    if (text.slice(at, at + 2) === "${") {
      const inner = scan(text, at + 2, true);
      code += `  ${inner.code}`;
      at = inner.end;
    }
    const step = text.charAt(at) === "\\" ? 2 : 1;
    code += blank(text, at, at + step).code;
    at += step;
  }
  return { code: `${code} `, end: at + 1 };
}

/** Whether a slash after this code opens a regular expression rather than divides. */
function startsExpression(code: string): boolean {
  return /(^|[(,=:[!&|?{};+\-*%<>~^]|\b(return|typeof|case|in|of|do|else|void|delete|throw|new|await|yield))\s*$/.test(code.slice(-40));
}

function regexEnd(text: string, from: number): number {
  let inClass = false;
  let at = from + 1;
  for (; at < text.length && (inClass || text.charAt(at) !== "/"); at += 1) {
    const char = text.charAt(at);
    if (char === "\n") return at;
    if (char === "\\") at += 1;
    else if (char === "[") inClass = true;
    else if (char === "]") inClass = false;
  }
  return at + 1;
}
