// `npm run house [-- --list]`: measures how well the source tree can be lived in, by the syntax tree, the imports and one run. --list: also names what stands behind each figure.

import { coreDrivers } from "./drivers.mjs";
import { PROGRAM_SOURCES, unusedExports } from "./exports.mjs";
import { readFolders } from "./folders.mjs";
import { arrowsUp, cyclesOf, foldersByFiles, mutualPairs } from "./imports.mjs";
import { lostReferences } from "./references.mjs";
import { PARSER, strayParsers } from "./request-texts.mjs";
import { filesOfSubmission } from "./submission.mjs";
import { readSources } from "./syntax.mjs";
import { sourceTexts } from "./texts.mjs";

const LONG_FUNCTION_LINES = 70;
const LAYERED = ["server", "sched", "mom"];

// A reader that has seen enough (`| head`) is no error.
process.stdout.on("error", (error) => process.exit(error.code === "EPIPE" ? 0 : 1));

const list = process.argv.includes("--list");
const sources = readSources();
const folders = readFolders();
const rows = [...ofFolders(), ...ofFunctions(), ...ofHomes(), ...ofWords(), await ofSubmission()];
const width = Math.max(...rows.map(([what]) => what.length));
for (const [what, figure, behind] of rows) {
  process.stdout.write(`${what.padEnd(width)}  ${figure}\n`);
  if (list) for (const line of behind) process.stdout.write(`    ${line}\n`);
}

/** Each row: the description, the figure, and the details. */
function ofFolders() {
  const bySize = foldersByFiles(sources);
  const ups = LAYERED.map((name) => [name, arrowsUp(sources, `src/${name}`, folders)]);
  const mutual = mutualPairs(sources);
  const cycles = cyclesOf(sources, { withTypes: true });
  const byValue = cyclesOf(sources, { withTypes: false });
  return [
    ["files in one folder, most", bySize[0].files, bySize.slice(0, 10).map(({ folder, files }) => `${files}  ${folder}`)],
    [
      `arrows back up inside ${LAYERED.join(", ")}`,
      ups.map(([, arrows]) => (arrows === undefined ? "no floors" : arrows.length)).join(", "),
      ups.flatMap(([name, arrows]) => arrows ?? [`src/${name}/README.md draws no floors`]),
    ],
    ["pairs of folders that import each other", mutual.length, mutual],
    ["import cycles, types counted: files", cycles.map((cycle) => cycle.length).join(", ") || 0, cycles.map((cycle) => cycle.join(" "))],
    ["import cycles by value: files", byValue.map((cycle) => cycle.length).join(", ") || 0, byValue.map((cycle) => cycle.join(" "))],
  ];
}

function ofFunctions() {
  const functions = sources.flatMap((source) => source.functions.map((each) => ({ ...each, path: source.path })));
  const long = functions.filter(({ lines }) => lines > LONG_FUNCTION_LINES).sort((a, b) => b.lines - a.lines);
  const casts = sources.flatMap((source) => source.casts.map((line) => `${source.path}:${line}`));
  const share = ((100 * long.length) / functions.length).toFixed(2);
  return [
    [
      `functions over ${LONG_FUNCTION_LINES} lines`,
      `${long.length} of ${functions.length} (${share} %), longest ${long[0]?.lines ?? 0}`,
      long.map(({ path, line, name, lines }) => `${lines}  ${path}:${line} ${name}`),
    ],
    ["casts `as T` (`as const` not counted)", casts.length, casts],
  ];
}

function ofHomes() {
  const strays = strayParsers(sourceTexts("src"));
  const drivers = coreDrivers(sourceTexts("src", "test", "bench"));
  const unused = unusedExports(sourceTexts("src", "test", "bench", "scripts"), PROGRAM_SOURCES);
  return [
    ["exported values that no other file imports", unused.length, unused],
    ["parsers of select text", 1 + strays.length, [PARSER, ...strays]],
    ["drivers of the server's core", drivers.length, drivers],
  ];
}

function ofWords() {
  const lost = lostReferences();
  return [["references to documents that are not in the repository", lost.length, lost]];
}

async function ofSubmission() {
  const files = await filesOfSubmission();
  return ["files a submitted job passes in the server", files.length, files];
}
