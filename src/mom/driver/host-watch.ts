// Makes the repeated measurements of a mom: the processes of its jobs, the load of the host, the site's resources, processes of users without a job, and the wall
// clock.

import { clockJumps, jumpText } from "#support/clock-jumps.ts";
import type { MomSettings } from "../config/config.ts";
import { isBusy } from "../config/node-load.ts";
import { strangersOf } from "../config/strangers.ts";
import type { MomEvent } from "../run/event.ts";
import type { MomState } from "../run/state.ts";
import type { MomIdentity, MomPorts } from "./ports.ts";
import { dueLeaders, nextPoll_s } from "./sampling.ts";

/** How often the load is measured. The value is an average, which changes slowly. */
const LOAD_PERIOD_MS = 5000;
/** How often the site's resources are read. */
const SITE_PERIOD_MS = 10_000;
const STRANGERS_PERIOD_MS = 10_000;

export type HostWatchTools = {
  readonly state: MomState;
  readonly settings: () => MomSettings;
  readonly happen: (event: MomEvent) => void;
  readonly note: (text: string) => void;
};

export class HostWatch {
  readonly #ports: Pick<MomPorts, "host" | "clock">;
  readonly #identity: MomIdentity;
  readonly #tools: HostWatchTools;
  readonly #jumped: () => number;
  #last_look_ms = 0;
  #poll_s = 0;
  #last_measure_ms = 0;
  #last_strangers_ms = 0;
  #last_site_ms = 0;
  #is_site_asked = false;

  constructor(ports: Pick<MomPorts, "host" | "clock">, identity: MomIdentity, tools: HostWatchTools) {
    this.#ports = ports;
    this.#identity = identity;
    this.#tools = tools;
    this.#jumped = clockJumps(ports.clock.wall_ms, ports.clock.steady_ms);
  }

  /** Measures what is due. Called every second. */
  tick(): void {
    const now_ms = this.#ports.clock.steady_ms();
    const jumped_ms = this.#jumped();
    if (jumped_ms !== 0) this.#tools.note(`the system clock was set ${jumpText(jumped_ms)}: walltime of jobs goes on as before`);
    this.#measure(now_ms);
    this.#readSite(now_ms);
    this.#killStrangers(now_ms);
    this.#sample(now_ms);
  }

  #sample(now_ms: number): void {
    const { state, settings, happen } = this.#tools;
    const { min_check_poll_s: min_s, max_check_poll_s: max_s } = settings();
    const { leaders, owners, all } = dueLeaders(state, this.#last_look_ms, now_ms, Math.max(min_s, this.#poll_s) * 1000);
    if (leaders.size === 0) return;
    if (all) {
      this.#poll_s = nextPoll_s(state, this.#last_look_ms, this.#poll_s, { min_s, max_s });
      this.#last_look_ms = now_ms;
    }
    happen({ kind: "sampled", seen: this.#ports.host.look(leaders, owners) });
  }

  /**
   * Measures how the host is used by others than jobs (load, keyboard), if the configuration requests it. When the
   * configuration no longer requests it, one more measurement ends the busy state.
   */
  #measure(now_ms: number): void {
    const { state, settings, happen } = this.#tools;
    const { load, kbd_idle } = settings();
    const wanted = load.max !== null || kbd_idle !== null;
    const period_ms = Math.min(LOAD_PERIOD_MS, kbd_idle === null ? LOAD_PERIOD_MS : kbd_idle.poll_s * 1000);
    if ((!wanted && !isBusy(state.busy)) || now_ms - this.#last_measure_ms < period_ms) return;
    this.#last_measure_ms = now_ms;
    happen({ kind: "measured", measure: this.#ports.host.measure(kbd_idle !== null) });
  }

  /** Reads the site's resources and reports them. After the last resource was removed from the configuration, the empty list is reported once. */
  #readSite(now_ms: number): void {
    const { state, settings, happen } = this.#tools;
    const { site } = settings();
    const none = Object.keys(site).length === 0 && Object.keys(state.site).length === 0;
    if (none || this.#is_site_asked || now_ms - this.#last_site_ms < SITE_PERIOD_MS) return;
    this.#last_site_ms = now_ms;
    this.#is_site_asked = true;
    this.#ports.host.readSite(site, this.#identity.alarm_s, (resources) => {
      this.#is_site_asked = false;
      happen({ kind: "site", resources });
    });
  }

  /** Kills processes of users who have no job here ($restrict_user). In user mode the mom has no right to do that. */
  #killStrangers(now_ms: number): void {
    const { state, settings, note } = this.#tools;
    const { host } = this.#ports;
    const { restrict_user } = settings();
    if (!restrict_user.on || !this.#identity.is_system || now_ms - this.#last_strangers_ms < STRANGERS_PERIOD_MS) return;
    this.#last_strangers_ms = now_ms;
    // Processes of the user `nobody` are spared, because hooks without rights run as that user.
    const owners = new Set([...state.runs.values()].flatMap(({ owner }) => owner.identity?.uid ?? []).concat(host.uidOf("nobody") ?? []));
    for (const pid of strangersOf(host.processes(), owners, restrict_user, (user) => host.uidOf(user))) {
      if (host.kill(pid)) note(`process ${pid} killed: its owner has no job here ($restrict_user)`);
    }
  }
}
