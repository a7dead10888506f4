// Manual pages of file formats (section 5) and of attributes and resources (section 7), made from docs/reference.

import { document, section, withoutTitle } from "./documents.mjs";
import { escapeText, roff } from "./roff.mjs";

const ATTRIBUTES = "reference/attributes.md";
const FILES = "reference/files.md";
const below = (markdown) => markdown.replaceAll(/^## /gm, "### ");
const attributes = (number) => () => `${section(ATTRIBUTES, number)}\n\n### Reading the table\n${section(ATTRIBUTES, 1)}`;

/** [section of the manual, name, purpose, contents] */
const PAGES = [
  ["5", "pbs.conf", "configuration of PBS on a host", () => section(FILES, 2)],
  ["5", "pbs_home", "files below PBS_HOME", () => section(FILES, 1)],
  ["5", "pbs_logs", "logs of the daemons of PBS", () => section(FILES, 3)],
  ["5", "pbs_accounting", "accounting records of PBS", () => section(FILES, 4)],
  [
    "5",
    "sched_config",
    "policy of a scheduler of PBS",
    () => `${section("reference/scheduler.md", 12)}\n\n${section("reference/scheduler.md", 11)}`,
  ],
  ["5", "campaign", "campaigns of jobs over many clusters", () => below(withoutTitle(document("reference/campaign-file.md")))],
  ["7", "pbs_server_attributes", "attributes of the server of PBS", attributes(2)],
  ["7", "pbs_sched_attributes", "attributes of schedulers of PBS", attributes(3)],
  ["7", "pbs_queue_attributes", "attributes of queues of PBS", attributes(4)],
  ["7", "pbs_node_attributes", "attributes of vnodes of PBS", attributes(5)],
  ["7", "pbs_job_attributes", "attributes of jobs of PBS", attributes(6)],
  ["7", "pbs_resv_attributes", "attributes of reservations of PBS", attributes(7)],
  ["7", "pbs_hook_attributes", "attributes of hooks of PBS", attributes(9)],
  ["7", "pbs_backend_attributes", "attributes of backends of Partita", attributes(11)],
  ["7", "pbs_resources", "built-in resources of PBS", () => section(ATTRIBUTES, 8)],
];

/** The first line of a page. */
export const title = (name, number) => `.TH ${name.toUpperCase()} ${number}B "" "Partita" "PBS"\n.ad l\n.nh`;

/** [path below share/man, text] of each page. */
export function formatPages() {
  return PAGES.map(([number, name, purpose, contents]) => {
    const lines = [
      title(name, number),
      ".SH NAME",
      `${escapeText(name, true)} \\- ${escapeText(purpose)}`,
      ".SH DESCRIPTION",
      ...roff(contents()),
    ];
    lines.push(".SH SEE ALSO", "qsub(1B), qmgr(8B), pbs.conf(5B), pbs_job_attributes(7B), pbs_resources(7B)");
    return [`man${number}/${name}.${number}B`, `${lines.join("\n")}\n`];
  });
}
