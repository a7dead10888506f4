// The words in front of a command line that make its program run as a user. They call setpriv, because Node.js itself would drop the user's groups.

import { existsSync } from "node:fs";
import type { Owner } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";

const PLACES = ["/usr/bin/setpriv", "/bin/setpriv"];

/** Returns no words if the owner is null (user mode). Never runs anything of a user as root: the uid 0 is refused. */
export function identityWords(owner: Owner | null): readonly string[] {
  if (owner === null) return [];
  if (owner.uid === 0 || owner.gid === 0)
    throw new BackendError({ kind: "configuration", text: `runners of ${owner.name} are refused: root's rights` });
  const setpriv = PLACES.find((path) => existsSync(path));
  if (setpriv === undefined) throw new BackendError({ kind: "configuration", text: "setpriv is missing (Debian: package util-linux)" });
  const groups = owner.groups.length > 0 ? `--groups=${owner.groups.join(",")}` : "--clear-groups";
  return [setpriv, `--reuid=${owner.uid}`, `--regid=${owner.gid}`, groups, "--inh-caps=-all", "--"];
}
