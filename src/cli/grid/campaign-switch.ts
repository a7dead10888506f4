// The commands that change the state of whole campaigns: griddel, gridhold, gridrls.

import type { GridChange } from "#protocol/grid-messages.ts";
import type { Command } from "../command.ts";
import { gridCommand, jsonText, Misuse, numberOf, wantsJson } from "./grid-command.ts";

/** letters: options that choose another action than the usual one. */
export function campaignSwitch(
  name: string,
  usage: string,
  letters: Readonly<Record<string, GridChange["action"]>>,
  usual: GridChange["action"],
): Command {
  const options = Object.fromEntries(Object.keys(letters).map((letter) => [letter, { type: "boolean", short: letter } as const]));
  return gridCommand(name, usage, { ...options, F: { type: "string", short: "F" } }, async (io, given, grid) => {
    const chosen = Object.keys(letters).filter((letter) => given.values[letter] === true);
    if (chosen.length > 1) throw new Misuse(`${chosen.map((letter) => `-${letter}`).join(" and ")} exclude each other`);
    if (given.operands.length === 0) throw new Misuse("the number of a campaign is missing");
    const campaigns = given.operands.map((text) => numberOf(text, "a campaign"));
    await grid.ask({ kind: "grid-change", campaigns, action: letters[chosen[0] ?? ""] ?? usual });
    if (wantsJson(given)) io.out(jsonText({ campaigns }));
    return 0;
  });
}
