// The calls of `partita` with their options, read from the sources that give them to yargs.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../lib/paths.mjs";

const TEXT = `("(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*')`;
/** call("start", "start ..."), verb("list", "..."), .command("stop", "..."), or a module's command: "cert", describe: "...". */
const CALL = new RegExp(`(?:\\b(call|verb)|(\\.command))\\(\\s*${TEXT},\\s*${TEXT}|\\bcommand:\\s*${TEXT},\\s*describe:\\s*${TEXT}`, "g");
const OPTION = new RegExp(`\\.(option|positional)\\(\\s*${TEXT},\\s*\\{([^{}]*)\\}`, "g");
const DESCRIBE = new RegExp(`describe:\\s*${TEXT}`);
const CHOICES = /choices: \[([^\]]*)\]/;

/** [{ command: "cert token", describe, options: [{ name, isOption, takesValue, choices, describe }] }] in the order of the sources. */
export function partitaCalls() {
  const admin = join(ROOT, "src/admin");
  const modules = readdirSync(admin, { recursive: true }).filter((name) => /-command\.ts$/.test(name));
  return ["calls.ts", ...modules.sort()].flatMap((name) => callsIn(readFileSync(join(admin, name), "utf8")));
}

function callsIn(source) {
  const found = [...source.matchAll(CALL)].map((match) => ({
    at: match.index,
    command: said(match[3] ?? match[5]),
    describe: said(match[4] ?? match[6]),
    isModule: match[5] !== undefined,
    isVerb: match[1] === "verb" || match[2] !== undefined,
  }));
  const outer = found.find(({ isModule }) => isModule)?.command.split(" ")[0];
  return found
    .map(({ at, command, describe, isVerb }, index) => ({
      at: isVerb && outer !== undefined ? at : at - source.length,
      command: isVerb && outer !== undefined ? `${outer} ${command}` : command,
      describe,
      options: [
        ...source
          .slice(at, found[index + 1]?.at)
          .split("\n);\n")[0]
          .matchAll(OPTION),
      ].map(([, kind, name, body]) => ({
        name: said(name),
        isOption: kind === "option",
        takesValue: !body.includes('"boolean"'),
        choices: [...(CHOICES.exec(body)?.[1] ?? "").matchAll(/"([^"]+)"/g)].map(([, choice]) => choice),
        describe: said(DESCRIBE.exec(body)?.[1] ?? '""'),
      })),
    }))
    .sort((a, b) => a.at - b.at)
    .map(({ at, ...call }) => call);
}

/** The value of a string literal. */
function said(literal) {
  return literal.startsWith("'") ? literal.slice(1, -1).replaceAll("\\'", "'") : JSON.parse(literal);
}
