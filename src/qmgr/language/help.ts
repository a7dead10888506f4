// The texts of `help` (docs/reference/qmgr.md 10): a general text, and one for each topic. Topics may be abbreviated. Each
// text ends with an empty line. Pure.

import { tableOf } from "./attribute-lookup.ts";

const COMMANDS: readonly (readonly [name: string, text: string])[] = [
  ["active", "The active command will set the active objects."],
  ["create", "The create command will create the specified object on the PBS server(s)."],
  ["delete", "The delete command will delete the specified object from the PBS server(s)."],
  ["set", "The set command sets the value for an attribute on the specified object."],
  ["unset", "The unset command will unset an attribute on the specified object."],
  ["list", "The list command will list out all the attributes for the specified object."],
  ["print", "The print command's output can be fed back into qmgr as input."],
  ["import", "This takes hook script contents."],
  ["export", "Dumps output of hook script into."],
  ["quit", "The quit command will exit from qmgr."],
  ["history", "The history command will show qmgr command history."],
];
const TOPICS: readonly (readonly [name: string, text: string])[] = [
  ["attributes", "type help or ? <attributes>."],
  ["operators", "type help or ? <operators>."],
  ["names", "type help or ? <names>."],
  ["values", "type help or ? <values>."],
];

const SET_SYNTAX = "set object [name,][,name...] attribute[.resource] OP value";

const TEXTS: readonly (readonly [topic: string, text: string])[] = [
  [
    "active",
    'Syntax: active object [name[@server][,name...]]\nObjects can be "server", "queue", "node" or "sched"\nNames the objects that later requests without a name are about; without names it shows them.\n\nExamples:\nactive queue workq,express\nactive node\n',
  ],
  [
    "create",
    'Syntax: create object name[,name...] \nObjects can be "queue", "node", "resource" or "hook"\nThe create command will create the specified object on the PBS server(s).\nFor multiple names, use a comma seperated list with no intervening whitespace.\nA hook object can only be created by the Administrator, and only on the \nhost on which the server runs.\n\nExamples:\ncreate queue q1,q2,q3\ncreate resource r1,r2,r3 type=long,flag=nh\n',
  ],
  [
    "delete",
    'Syntax: delete object name[,name...]\nObjects can be "queue", "node", "resource", "sched" or "hook"\nThe delete command will delete the specified object from the PBS server(s).\n\nExamples:\ndelete queue q1,q2\ndelete sched s1\n',
  ],
  [
    "set",
    `Syntax: ${SET_SYNTAX}\nObjects can be "server", "queue", "node", "resource", "sched", "hook" or "pbshook"\nThe set command sets the value for an attribute on the specified object.\n\nExamples:\nset queue workq enabled=True,started=True\nset sched s1 partition+=p2\nset node n1 resources_available.ncpus=16\n`,
  ],
  [
    "unset",
    "Syntax: unset object [name][,name...] attribute[.resource][,attribute...]\nThe unset command will unset an attribute on the specified object.\n\nExamples:\nunset queue workq max_run\nunset node n1 comment,Priority\n",
  ],
  [
    "list",
    "Syntax: list object [name][,name...] [attribute[.resource]][,attribute...]\nThe list command will list out all the attributes for the specified object.\n\nExamples:\nlist server\nlist sched s1 state,scheduling\nlist node @default\n",
  ],
  [
    "print",
    "Syntax: print object [name][,name...] [attribute][,attribute...]\nThe print command's output can be fed back into qmgr as input.\n\nExamples:\nprint server\nprint node @default\n",
  ],
  [
    "import",
    "Syntax: import hook name content-type content-encoding file|-\nContent types: application/x-python, application/x-config; encodings: default, base64.\nThis takes hook script contents.\n",
  ],
  [
    "export",
    "Syntax: export hook name content-type content-encoding [file]\nDumps output of hook script into a file, or on standard output.\n",
  ],
  ["quit", "Syntax: quit\nThe quit command will exit from qmgr.\n"],
  ["exit", "Syntax: exit\nThe exit command will exit from qmgr.\n"],
  ["history", "Syntax: history [n]\nThe history command will show qmgr command history: the last n lines; !n runs line n again.\n"],
  [
    "operators",
    `Syntax: ${SET_SYNTAX}\n=    sets the value\n+=   adds: numbers and sizes are summed, list entries and text appended\n-=   takes away: numbers and sizes are subtracted, a list entry is removed\n`,
  ],
  [
    "values",
    `Syntax: ${SET_SYNTAX}\nA value ends at a comma or blank; one that holds them stands in ' or ". The character & is illegal.\nSizes: an integer with b, kb, mb, gb, tb or pb (or w, kw, ...). Durations: seconds or [[HH:]MM:]SS. Booleans: True or False.\n`,
  ],
  [
    "names",
    "Names: name[@server][,name[@server]...]\nThe name of a queue, resource, scheduler or hook begins with a letter; @default stands for the default server, @active for the active ones;\na blank before @server means all objects of the type.\n",
  ],
  [
    "attributes",
    "Attributes: attribute[.resource]\nhelp serverpublic, serverro, queuepublic, queueexec, queueroute, queuero and nodeattr name the attributes of each object.\n",
  ],
  ["serverpublic", "attributes:server:settable"],
  ["serverro", "attributes:server:readonly"],
  ["queuepublic", "attributes:queue:public"],
  ["queueexec", "attributes:queue:Execution"],
  ["queueroute", "attributes:queue:Route"],
  ["queuero", "attributes:queue:readonly"],
  ["nodeattr", "attributes:node:all"],
];

/** Returns the text of `help [topic]`. */
export function helpText(topic: string): string {
  if (topic === "") return generalText();
  const found = TEXTS.find(([name]) => name.startsWith(topic));
  if (found === undefined) return `No help available on: ${topic}\nCheck the PBS Reference Guide for more help.\n\n`;
  const text = found[1].startsWith("attributes:") ? attributeText(found[1]) : found[1];
  return `${text}\n`;
}

/** Returns one line of help about a command. */
export function helpLine(command: string): string {
  return COMMANDS.find(([name]) => name === command)?.[1] ?? "";
}

function generalText(): string {
  const rows = (list: readonly (readonly [string, string])[]): string =>
    list.map(([name, text]) => `${name.padEnd(22)} ${text}\n`).join("");
  return `General syntax: command [object][@server] [name attribute[.resource] OP value]\nTo get help on any topic or subtopic, type help <topic>\nHelp is available on all commands and topics.\nAvailable commands: \n${rows(COMMANDS)}Other topics: \n${rows(TOPICS)}\n`;
}

function attributeText(marker: string): string {
  const [, object, group] = marker.split(":");
  const table = tableOf(object as "server" | "queue" | "node");
  const rows = (table?.rows ?? []).filter((def) => {
    if (group === "all") return def.read !== "none";
    if (group === "readonly") return def.set === "pbs" && def.read !== "none";
    if (group === "Execution" || group === "Route") return def.only === group;
    return def.set !== "pbs" && def.only === undefined;
  });
  return rows.map((def) => `${def.name.padEnd(26)} ${def.help}\n`).join("");
}
