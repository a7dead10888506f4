// Ports of a mom's driver that note what leaves, in its order. A turn ends when the test says so.

import { DEFAULT_SETTINGS } from "#mom/config/config.ts";
import type { ClockPort, Hearer, MomPorts, ServerEnd, StarterEnd } from "#mom/driver/ports.ts";
import type { AgentToMom } from "#mom/job/agent-link.ts";
import { HandClock } from "#server/driver/hand-clock.ts";
import { CONFIG, OWNER } from "../world.ts";

/** A clock moved by hand whose turns end at endTurn(). */
export class TurnClock extends HandClock implements ClockPort {
  #at_end: (() => void)[] = [];

  atEnd(work: () => void): void {
    this.#at_end.push(work);
  }

  endTurn(): void {
    for (let work = this.#at_end.shift(); work !== undefined; work = this.#at_end.shift()) work();
    this.settle();
  }

  pass(ms: number): void {
    this.now_ms += ms;
    this.ring();
    this.endTurn();
  }
}

export type Bed = {
  readonly clock: TurnClock;
  /** what left, in its order */
  readonly words: string[];
  readonly log: string[];
  readonly ports: MomPorts;
  server: ServerEnd | null;
  starter: StarterEnd | null;
  readonly agents: { readonly heard: Hearer<AgentToMom>; closed(): void }[];
  /** the disk accepts nothing */
  is_full: boolean;
};

const idle = (): undefined => undefined;

export function bed(): Bed {
  const words: string[] = [];
  const log: string[] = [];
  const clock = new TurnClock(1_000_000);
  const say = (what: string, data: unknown): void => void words.push(`${what} ${JSON.stringify(data)}`);
  const write = (what: string): void => {
    if (made.is_full) throw new Error("ENOSPC");
    words.push(what);
  };
  const made: Bed = { clock, words, log, ports: null as never, server: null, starter: null, agents: [], is_full: false };
  const ports: MomPorts = {
    clock,
    server: {
      dial: (end) => {
        made.server = end;
        return { connected: true, send: ({ type, data }) => say(type, data), reconnect: () => void words.push("reconnect"), close: idle };
      },
    },
    reports: null,
    group: null,
    starter: {
      connect: (end) => {
        made.starter = end;
        end.connected({ send: (type, data) => say(type, data), close: idle });
      },
      launch: idle,
    },
    agent: {
      launch: (lane, heard, closed) => {
        words.push(`launch ${lane}`);
        made.agents.push({ heard, closed });
        return { send: (type, data) => say(type, data), finish: idle, close: idle };
      },
    },
    disk: {
      records: {
        name: "records",
        read: () => "",
        putAside: idle,
        replace: idle,
        append: (text) => write(`records ${text.trim().split("\n").length}`),
        close: idle,
      },
      foundCheckpoints: () => [],
      removeCheckpoint: idle,
      foundKept: () => [],
      noteKept: idle,
    },
    scripts: { run: (_action, _running, done) => done({ kind: "none" }), act: idle },
    hooks: { kept: () => null, keep: idle, run: idle, reboot: idle, close: idle },
    tasks: {
      open: () => ({
        path: "/sock",
        say: (asked, { type }) => void words.push(`say ${asked} ${type}`),
        forward: idle,
        drain: idle,
        drainLast: idle,
        tick: idle,
        close: idle,
      }),
    },
    host: {
      measure: () => ({ load: 0, idle_s: null }),
      look: () => new Map(),
      processes: () => [],
      uidOf: () => null,
      kill: () => false,
      readSite: idle,
      ownerOf: () => OWNER,
    },
    setup: { settings: () => DEFAULT_SETTINGS, config: () => CONFIG, vnodes: () => [] },
    log: { record: (_event, _class, _object, text) => void log.push(text), setMask: idle, reopen: idle, close: idle },
    ready: idle,
    ended: () => void words.push("ended"),
  };
  return Object.assign(made, { ports });
}
