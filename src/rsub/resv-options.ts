// Parses options of pbs_rsub and pbs_ralter that set attributes of reservations (docs/reference/commands.md 5). Pure.

import { parseTimeArgument } from "#cli/dates.ts";
import { isJobName } from "#cli/job-options.ts";
import { isAtList, parseResources } from "#cli/value-lists.ts";
import type { AttrValueText } from "#protocol/messages.ts";

export type OptionResult = { readonly ok: true; readonly attrs: readonly AttrValueText[] } | { readonly ok: false; readonly text: string };

const NAME_LIST = {
  u: "User_List",
  g: "group_list",
  U: "Authorized_Users",
  G: "Authorized_Groups",
  H: "Authorized_Hosts",
};

/** Returns the attributes that an option sets, or the message about its fault. */
export function readResvOption(command: string, letter: string, value: string, world: { readonly now_ms: number }): OptionResult {
  const illegal = (what = "value"): OptionResult => ({ ok: false, text: `${command}: illegal -${letter} ${what}\n` });
  const set = (name: string, text = value): OptionResult => ({ ok: true, attrs: [{ name, value: text }] });
  switch (letter) {
    case "R":
    case "E": {
      const epoch_s = parseTimeArgument(value, world.now_ms);
      return epoch_s === null ? illegal("time value") : set(letter === "R" ? "reserve_start" : "reserve_end", String(epoch_s));
    }
    case "I":
      return /^[+-]?[1-9]\d{0,8}$/.test(value) ? set("interactive", value.replace("+", "")) : illegal("time value");
    case "m":
      return value === "n" || /^[abce]+$/.test(value) ? set("Mail_Points") : illegal();
    case "M":
      return isAtList(value) ? set("Mail_Users") : illegal();
    case "N":
      return isJobName(value) && !value.startsWith("-") ? set("Reserve_Name") : illegal();
    case "l":
      return readResources(value, illegal());
    case "u":
    case "g":
    case "U":
    case "G":
    case "H":
      return value.split(",").every((item) => /^\s*[^\s,]+\s*$/.test(item)) ? set(NAME_LIST[letter]) : illegal();
    default:
      return illegal();
  }
}

function readResources(text: string, illegal: OptionResult): OptionResult {
  const resources = parseResources(text);
  if (!Array.isArray(resources)) return illegal;
  return { ok: true, attrs: resources.map(({ name, value }) => ({ name: "Resource_List", resource: name, value })) };
}

/**
 * Completes the id of a reservation with the server's name if that is missing. Returns null if the text is malformed. A number without R, S or M is completed
 * like an id, which the server then does not find; with `strict` it counts as malformed.
 */
export function completeResvId(text: string, server: string, strict = false): string | null {
  const match = /^([RSM]?\d{1,12})(?:\.([A-Za-z0-9_][A-Za-z0-9._-]*))?(?:@\S+)?$/.exec(text);
  if (match === null || (strict && !/^[RSM]/.test(text))) return null;
  return `${match[1]}.${match[2] ?? server}`;
}
