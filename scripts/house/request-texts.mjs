// The files that parse request texts (select, place, nodes, exec_vnode, exec_host). Only one folder may do so.

import { basename } from "node:path";

export const PARSER = "src/model/request";

/** How such a text is cut up: at `+` or `:`, by an expression for a vnode or host, by the text of a pair inside it. */
const CUTS = [
  /\.split\((["'`])[+:]\1/,
  /\.(?:includes|indexOf|lastIndexOf)\((["'`])\+\1/,
  /\[\^[^\]]*\+[^\]]*\]/,
  /\/\[[()]{2}\]\//,
  /(?:["'`/]):[a-z_]+=/,
  /\.split\((["'`])\/\1, 1\)/,
];

/** Files that split texts of other grammars at the same characters, with these grammars. */
const OTHER_GRAMMARS = new Map([
  ["acl.ts", "access control lists"],
  ["answer.ts", "what bhosts and bjobs print"],
  ["doctor.ts", "PATH"],
  ["duration.ts", "durations"],
  ["group-address.ts", "IPv6 addresses"],
  ["help.ts", "markers of help texts"],
  ["job-row.ts", "durations"],
  ["launch.ts", "PATH"],
  ["options.ts", "qsub options of a foreign PBS"],
  ["passwd.ts", "passwd and group files"],
  ["preempt-rules.ts", "preempt_prio"],
  ["resv-times.ts", "durations"],
  ["sched-attributes.ts", "preempt_prio"],
  ["sched-config.ts", "durations"],
  ["tokens.ts", "requests of qmgr"],
  ["unproved.ts", "IPv6 addresses"],
]);

/** `path:line text` for each place outside PARSER that cuts a request text up. files: [{path, text}] */
export function strayParsers(files) {
  return files
    .filter(({ path }) => !path.startsWith(`${PARSER}/`) && !OTHER_GRAMMARS.has(basename(path)))
    .flatMap(({ path, text }) =>
      text
        .split("\n")
        .map((line, at) => ({ line: line.trim(), at: at + 1 }))
        .filter(({ line }) => !/^(\/\/|\/?\*)/.test(line) && CUTS.some((cut) => cut.test(line)))
        .map(({ line, at }) => `${path}:${at} ${line}`),
    );
}
