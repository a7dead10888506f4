// node:test reporter of the test runner: silent about what passes, complete about what fails, aloud about what is skipped.
// Writes {passed, failed, skipped: [{name, file, why}]} to the file named by PARTITA_TEST_REPORT, and beside it, in FILE.progress, the name of the last test
// that ended: from the age of that file the runner sees that a run hangs.

import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import { inspect } from "node:util";

export default async function* report(source) {
  const skipped = [];
  const open = [];
  const output = new Map();
  let counts = { passed: 0, failed: 0 };
  const progress = progressNote(process.env.PARTITA_TEST_REPORT);
  for await (const { type, data } of source) {
    if (type === "test:pass" || type === "test:fail") progress(`${data.name}  (${shownFile(data)})`);
    if (type === "test:start") open[data.nesting] = data.name;
    else if (type === "test:pass" && data.skip !== undefined && data.skip !== false) {
      skipped.push({ name: titlePath(open, data), file: shownFile(data), why: data.skip === true ? "no reason given" : data.skip });
    } else if (type === "test:fail" && isOwnFailure(data)) yield failure(open, data, output);
    else if ((type === "test:stdout" || type === "test:stderr") && data.file !== undefined) {
      output.set(data.file, (output.get(data.file) ?? "") + data.message);
    } else if (type === "test:summary" && data.file === undefined) counts = data.counts;
    else if (type === "test:summary") yield fileLine(data, skipped, output);
    else if (type === "test:interrupted") yield interrupted(data);
  }
  const result = { passed: counts.passed, failed: counts.failed + (counts.cancelled ?? 0) + (counts.todo ?? 0), skipped };
  if (process.env.PARTITA_TEST_REPORT) writeFileSync(process.env.PARTITA_TEST_REPORT, JSON.stringify(result));
}

const PROGRESS_MS = 1_000;

/** Notes the name of a test that ended, at most once a second. */
function progressNote(report) {
  let noted_ms = -Infinity;
  return (name) => {
    if (!report || performance.now() - noted_ms < PROGRESS_MS) return;
    noted_ms = performance.now();
    writeFileSync(`${report}.progress`, name);
  };
}

/** A parent fails because a child failed, and the child's report is sufficient. */
function isOwnFailure(data) {
  return data.details.error?.failureType !== "subtestsFailed";
}

function titlePath(open, data) {
  return [...open.slice(0, data.nesting), data.name].join(" > ");
}

function shownFile(data) {
  return data.file === undefined ? "" : relative(process.cwd(), data.file);
}

function failure(open, data, output) {
  const error = data.details.error?.cause ?? data.details.error;
  const text =
    typeof error === "string"
      ? error
      : isAssertion(error)
        ? assertionText(error)
        : inspect(error, { depth: 6, colors: process.stdout.isTTY });
  return `\nFAILED  ${titlePath(open, data)}\n        ${shownFile(data)}:${data.line ?? 0}\n${indent(text)}\n${fileOutput(data.file, output)}`;
}

function isAssertion(error) {
  return error?.code === "ERR_ASSERTION" && typeof error.message === "string";
}

/** The message holds the difference; of the stack, only our own files help. */
function assertionText(error) {
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at .*file:/.test(line));
  return [error.message.trimEnd(), ...frames.map((line) => line.trim().replace(`file://${process.cwd()}/`, ""))].join("\n");
}

/** In tests with real processes the file's own output is often the explanation. */
function fileOutput(file, output) {
  const text = output.get(file)?.trimEnd();
  output.delete(file);
  return text ? `        output of the file so far:\n${indent(text)}\n` : "";
}

/** Used only with a process for each file: one line when the file has ended. */
function fileLine(data, allSkipped, output) {
  output.delete(data.file);
  const { passed, failed, cancelled } = data.counts;
  // The summary counts skipped tests, not skipped suites.
  const skipped = allSkipped.filter((each) => each.file === shownFile(data)).length;
  const parts = [
    `${passed} passed`,
    ...(failed + cancelled ? [`${failed + cancelled} failed`] : []),
    ...(skipped ? [`${skipped} skipped`] : []),
  ];
  return `  ${data.counts.failed + cancelled ? "FAILED" : "ok    "} ${shownFile(data)}  ${parts.join(", ")}  ${(data.duration_ms / 1000).toFixed(1)} s\n`;
}

function interrupted(data) {
  const names = (data.tests ?? []).map((each) => `  ${each.name}  ${shownFile(each)}`);
  return `\nended while these were running:\n${names.join("\n")}\n`;
}

function indent(text) {
  return text
    .split("\n")
    .map((line) => `        ${line}`)
    .join("\n");
}
