// The form of a parsed qmgr request, and the faults that a request may have. Only types and tables.

import type { ManagedObject } from "#protocol/messages.ts";

export const VERBS = [
  "create",
  "delete",
  "set",
  "unset",
  "list",
  "print",
  "active",
  "import",
  "export",
  "help",
  "?",
  "quit",
  "exit",
  "history",
] as const;
export type Verb = (typeof VERBS)[number];

/** The words for types of objects, each with its type. An abbreviation means the first word that begins with it (docs/reference/qmgr.md 3). */
export const OBJECT_WORDS: readonly (readonly [word: string, object: ManagedObject])[] = [
  ["server", "server"],
  ["queue", "queue"],
  ["queues", "queue"],
  ["node", "node"],
  ["nodes", "node"],
  ["resource", "resource"],
  ["sched", "sched"],
  ["hook", "hook"],
  ["pbshook", "pbshook"],
  ["backend", "backend"],
];

/** One element of a list of names. name "": all objects, or, if server is "" too, the active ones. server "": the active servers. */
export type ObjectName = { readonly name: string; readonly server: string };

export type AttributeTerm = {
  readonly name: string;
  readonly resource?: string;
  /** absent in the requests list, print and unset */
  readonly op?: "=" | "+=" | "-=";
  readonly value?: string;
};

export type QmgrRequest =
  | {
      readonly verb: "create" | "delete" | "set" | "unset" | "list" | "print" | "active";
      readonly object: ManagedObject;
      readonly names: readonly ObjectName[];
      readonly attrs: readonly AttributeTerm[];
    }
  | {
      readonly verb: "import" | "export";
      readonly object: ManagedObject;
      readonly names: readonly ObjectName[];
      readonly words: readonly string[];
    }
  | { readonly verb: "help" | "history"; readonly argument: string }
  | { readonly verb: "quit" }
  | { readonly verb: "nothing" };

/** A fault that the parser has found. exit_code: as in docs/reference/qmgr.md 4. */
export type ParseFault =
  | { readonly kind: "operation"; readonly exit_code: 1; readonly word: string }
  | { readonly kind: "no-object"; readonly exit_code: 2 }
  | { readonly kind: "object"; readonly exit_code: 2; readonly word: string }
  | { readonly kind: "syntax"; readonly exit_code: 3 | 4; readonly column: number; readonly word_too_long?: boolean };

export type ParseResult = { readonly ok: true; readonly request: QmgrRequest } | { readonly ok: false; readonly fault: ParseFault };
