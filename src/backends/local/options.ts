// Reads the attributes of a backend object of type local: what runners may use of this machine. Pure.

import type { BackendSettings } from "../contract/settings.ts";
import { amountsSetting, textSetting } from "../contract/settings.ts";

/** Amounts by resource; sizes in kilobytes. */
export type Amounts = Readonly<Record<string, number>>;

export type LocalOptions = {
  /** what all runners may use together */
  readonly capacity: Amounts;
  readonly output_dir: string | null;
};

/** What the machine has: the processors that this process may use, and the physical memory. */
export type Machine = { readonly ncpus: number; readonly mem_kb: number };

export function localOptions({ attributes }: BackendSettings, machine: Machine): LocalOptions {
  const given = amountsSetting(attributes, "resources_available");
  return { capacity: { ncpus: machine.ncpus, mem: machine.mem_kb, ...given }, output_dir: textSetting(attributes, "output_dir") };
}
