// `partita import-pbs`: takes over the configuration of another PBS from what its qmgr prints.
//
// M1. Every request is tried in memory first (rehearsal.ts). Only requests that were taken or changed there go to the complex.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { messageOf } from "#support/caught.ts";
import { type Conf, shortHostName } from "#support/conf.ts";
import { AdminError } from "../complex/complex-home.ts";
import { complexEnv, programOf } from "../complex/daemons.ts";
import { type DumpRequest, readDump } from "./dump.ts";
import { Rehearsal } from "./rehearsal.ts";
import { type CarriedOut, countOutcomes, judge, prepared, quoted, type Verdict } from "./verdicts.ts";

type ImportOptions = {
  readonly dumps: readonly string[];
  /** only says what would happen */
  readonly check: boolean;
  readonly json: boolean;
  /** also shows the requests that are taken as they are */
  readonly all: boolean;
};

/** Returns the report, and the exit status: 1 if a request was refused. Throws AdminError if a dump cannot be read or the complex refuses a request that the rehearsal took. */
export async function importPbs(conf: () => Conf, options: ImportOptions): Promise<{ readonly text: string; readonly status: number }> {
  const requests = options.dumps.flatMap((path) => readDump(textOf(path)));
  if (requests.length === 0)
    throw new AdminError(`${options.dumps.join(", ")}: no request of qmgr is in it; make it with: qmgr -c "print server"`);
  const rehearsal = new Rehearsal(shortHostName(hostname()), Date.now());
  const done: CarriedOut[] = [];
  for (const request of requests) done.push(await rehearse(rehearsal, request));
  const verdicts = judge(done, await rehearsal.print());
  if (!options.check) {
    const sent = done.flatMap(({ sent, ok }, at) => (ok && sent !== null ? [{ text: sent, contents: requests[at]?.contents ?? "" }] : []));
    carryOut(conf(), sent);
  }
  const status = verdicts.some(({ outcome }) => outcome === "refused") ? 1 : 0;
  return { text: options.json ? asJson(verdicts, options) : asText(verdicts, options), status };
}

function textOf(path: string): string {
  try {
    return readFileSync(path === "-" ? 0 : path, "utf8");
  } catch (error) {
    throw new AdminError(`${path}: ${messageOf(error)}`);
  }
}

async function rehearse(rehearsal: Rehearsal, { line, text, contents }: DumpRequest): Promise<CarriedOut> {
  const { sent, note } = prepared(text);
  if (sent === null) return { line, request: text, sent, note, ok: true, text: "" };
  const first = await rehearsal.run(sent, contents);
  const again = first.ok ? null : quoted(sent);
  if (again === null) return { line, request: text, sent, note, ...first };
  const second = await rehearsal.run(again, contents);
  return { line, request: text, sent: again, note, ...(second.ok ? second : first) };
}

/** Sends requests to the complex, in one run of qmgr. Throws AdminError if the complex refuses one of them. */
function carryOut(conf: Conf, requests: readonly Pick<DumpRequest, "text" | "contents">[]): void {
  const input = requests.map(({ text, contents }) => `${text}\n${contents === "" ? "" : `${contents}\n`}`).join("");
  const { status, stderr, error } = spawnSync(programOf(conf, "qmgr"), [], { input, encoding: "utf8", env: complexEnv(conf) });
  if (error !== undefined) throw new AdminError(`qmgr: ${error.message}`);
  if (status !== 0 || stderr.trim() !== "")
    throw new AdminError(
      `the complex has refused some requests (hosts without an address, or objects that exist already):\n${stderr.trimEnd()}`,
    );
}

const asJson = (verdicts: readonly Verdict[], { check }: ImportOptions): string =>
  `${JSON.stringify({ check, ...countOutcomes(verdicts), lines: verdicts }, null, 2)}\n`;

function asText(verdicts: readonly Verdict[], { check, all }: ImportOptions): string {
  const { taken, changed, refused } = countOutcomes(verdicts);
  const lines = verdicts.flatMap(({ line, text, outcome, says }) =>
    outcome === "taken" && !all ? [] : [`${outcome.padEnd(7)} ${line}: ${text}${says === "" ? "" : `\n        ${says}`}`],
  );
  const verb = check ? "would be" : "were";
  return `${[...lines, `${taken} requests ${verb} taken as they are, ${changed} changed, ${refused} refused.`].join("\n")}\n`;
}
