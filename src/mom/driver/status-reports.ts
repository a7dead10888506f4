// Reports of a mom to a server on another host: by datagrams, and over the connection while datagrams are not answered
// (mom-link.ts I6). A mom on the server's own host sends no reports.
//
// R1. Every report shows that the mom is alive, and contains all usage of runs for which no report was answered yet. So a lost datagram loses no usage.
// R2. Every datagram is a report of its own. If the usage needs several, each has a part of it.
// R3. After MISSED_MAX reports whose datagrams were not answered, reports also go over the connection, until a datagram is answered.

import { type ChannelKeys, TEXT_BYTES_MAX } from "#protocol/datagram/packet.ts";
import { StatusChannel } from "#protocol/datagram/status-channel.ts";
import type { MomReport, MomToServer, ServerToMom } from "#protocol/mom-link.ts";
import { type FrameOf, parseFrame } from "#protocol/schema-link.ts";
import type { ClockPort, ReportsPort } from "./ports.ts";

/** Number of unanswered reports after which the mom assumes that datagrams do not arrive. */
const MISSED_MAX = 3;
/** Longest reason why the mom cannot start jobs, in characters. */
const ILL_CHARS_MAX = 200;

type UsageOfRun = MomToServer["mom-usage"]["jobs"][number];
type Resources = MomToServer["mom-site"]["resources"];
/** in_report: number of the last report that contained it; null: no report did */
type Kept<T> = { readonly value: T; in_report: number | null };

export type StatusReportsOptions = {
  readonly port: ReportsPort;
  readonly clock: Pick<ClockPort, "after" | "wall_ms">;
  readonly host: string;
  /** called for each report */
  readonly every_s: () => number;
  /** returns the beginning of a report that leaves now: its number, and what every report says */
  readonly opening: () => Opening;
  /** called with each answer to a datagram */
  readonly answered: (heard: ServerToMom["mom-heard"]) => void;
  /** sends a frame over the connection */
  readonly send: (frame: FrameOf<"mom-to-server">) => void;
  readonly note: (text: string) => void;
};

export class StatusReports {
  readonly #options: StatusReportsOptions;
  readonly #channel: StatusChannel;
  readonly #socket: ReturnType<ReportsPort["open"]>;
  readonly #usage = new Map<string, Kept<UsageOfRun>>();
  #site: Kept<Resources> | null = null;
  /** consecutive reports whose datagrams were not answered */
  #missed = 0;
  #is_welcomed = false;
  /** the position to acknowledge; null: no acknowledgement is due */
  #got: number | null = null;
  #cancel: () => void = () => undefined;

  constructor(options: StatusReportsOptions) {
    this.#options = options;
    this.#channel = new StatusChannel(options.port.cipher);
    this.#socket = options.port.open((bytes) => this.#receive(bytes));
  }

  /** Whether usage and site resources are reported here. */
  get isOn(): boolean {
    return this.#is_welcomed;
  }

  /**
   * Called when the server has welcomed the mom: reports begin. Each mom waits for a different time first, so that moms that
   * were welcomed together do not report together.
   */
  begin(): void {
    this.#is_welcomed = true;
    this.#missed = 0;
    this.#later(this.#options.every_s() * 1000 * shareOf(this.#options.host));
  }

  /** Called when the connection is lost. Values that were not reported are kept for the next connection. */
  pause(): void {
    this.#is_welcomed = false;
    this.#got = null;
    this.#channel.take(null);
    this.#cancel();
  }

  close(): void {
    this.pause();
    this.#socket.close();
  }

  takeKeys({ channel, key, boot }: ServerToMom["mom-keys"]): void {
    const bytes = Uint8Array.from(atob(key), (letter) => letter.charCodeAt(0));
    const keys: ChannelKeys = { channel, key: bytes, boot, host: this.#options.host.toLowerCase() };
    this.#channel.take(keys);
  }

  /** Called when the server has answered: it has received the report of that number. */
  heard({ number }: ServerToMom["mom-heard"]): void {
    for (const [job, { in_report }] of this.#usage) if (in_report === number) this.#usage.delete(job);
    if (this.#site?.in_report === number) this.#site = null;
  }

  /**
   * Acknowledges commands that came by multicast: everything before this position of the stream. Each mom waits for a different
   * part of spread_ms, so that the acknowledgements of all moms do not arrive at once.
   */
  acknowledge(position: number, spread_ms: number): void {
    const is_due = this.#got !== null;
    this.#got = position;
    if (is_due) return;
    this.#options.clock.after(spread_ms * shareOf(this.#options.host), () => {
      const got = this.#got;
      this.#got = null;
      if (got === null) return;
      const data: MomToServer["mom-got"] = { position: got };
      if (this.#channel.isOpen && this.#missed <= MISSED_MAX) this.#socket.send(this.#channel.seal(JSON.stringify(data)));
      else this.#options.send({ type: "mom-got", data });
    });
  }

  keepUsage(jobs: readonly UsageOfRun[]): void {
    for (const value of jobs) this.#usage.set(value.job, { value, in_report: null });
  }

  keepSite(value: Resources): void {
    this.#site = { value, in_report: null };
  }

  #receive(bytes: Uint8Array): void {
    const text = this.#channel.open(bytes);
    const parsed = text === null ? null : parseFrame("server-to-mom", "mom-heard", JSON.parse(text));
    if (parsed === null || !parsed.ok || parsed.frame.type !== "mom-heard") return;
    if (this.#missed > MISSED_MAX) this.#options.note("the server answers datagrams again");
    this.#missed = 0;
    this.heard(parsed.frame.data);
    this.#options.answered(parsed.frame.data);
  }

  #later(delay_ms: number): void {
    this.#cancel();
    this.#cancel = this.#options.clock.after(delay_ms, () => {
      this.#later(this.#options.every_s() * 1000);
      this.#report();
    });
  }

  #report(): void {
    const { send, note } = this.#options;
    if (this.#channel.isOpen) {
      for (const report of this.#parts()) this.#socket.send(this.#channel.seal(JSON.stringify(report)));
    }
    this.#missed++;
    if (this.#missed <= MISSED_MAX && this.#channel.isOpen) return;
    if (this.#missed === MISSED_MAX + 1) note("the server does not answer datagrams: reports go over the connection");
    const kept = [...this.#usage.values()];
    const report = { ...this.#opening(), unheard: this.#missed };
    for (const usage of kept) usage.in_report = report.number;
    if (kept.length > 0) report.jobs = kept.map(({ value }) => value);
    this.#addSite(report, Number.POSITIVE_INFINITY);
    send({ type: "mom-report", data: report });
  }

  #opening(): Part {
    return { ...this.#options.opening(), clock_ms: Math.floor(this.#options.clock.wall_ms()) };
  }

  /** Makes the reports that are due now; each fits into a datagram (R2). Content that is too long for a datagram is sent over the connection. */
  #parts(): readonly Part[] {
    const first = this.#opening();
    const room = TEXT_BYTES_MAX - bytesOf(first) - FRAME_BYTES;
    const parts = [first];
    let left = room - this.#addSite(first, room);
    for (const usage of [...this.#usage.values()]) {
      const bytes = bytesOf(usage.value) + 1;
      if (bytes > room) {
        this.#usage.delete(usage.value.job);
        this.#options.send({ type: "mom-usage", data: { jobs: [usage.value] } });
        continue;
      }
      if (bytes > left) {
        parts.push(this.#opening());
        left = room;
      }
      left -= bytes;
      const part = parts.at(-1) ?? first;
      usage.in_report = part.number;
      part.jobs = [...(part.jobs ?? []), usage.value];
    }
    return parts;
  }

  /** Adds the site's resources to a report, if they have changed. Returns the number of bytes that they take. */
  #addSite(report: Part, room: number): number {
    const site = this.#site;
    if (site === null) return 0;
    const bytes = bytesOf(site.value);
    if (bytes > room) {
      this.#options.send({ type: "mom-site", data: { resources: site.value } });
      this.#site = null;
      return 0;
    }
    site.in_report = report.number;
    report.site = site.value;
    return bytes;
  }
}

/** The beginning of a report. */
export type Opening = Pick<MomReport, "number" | "grace" | "ill">;

/** Makes the beginning of a report. ill: the reason why the mom cannot start jobs; null: it can. grace: the newest one that is known; 0: none */
export const openingOf = (number: number, grace: number, ill: string | null): Opening => ({
  number,
  ...(grace === 0 ? {} : { grace }),
  ...(ill === null ? {} : { ill: ill.replace(/[^ -~]/g, "?").slice(0, ILL_CHARS_MAX) }),
});

/** A report that is being made. */
type Part = Opening & Pick<MomReport, "clock_ms" | "unheard"> & { jobs?: readonly UsageOfRun[]; site?: Resources };

/** Bytes of a report in addition to usage and resources: the names of the fields, and room for longer numbers. */
const FRAME_BYTES = 40;

const bytesOf = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length;

/** Returns a number from 0 to 1 that depends on the name: FNV-1a (Fowler, Noll, Vo), and the last step of MurmurHash3, because names of hosts are much alike. */
function shareOf(name: string): number {
  let hash = 0x811c9dc5;
  for (const letter of name) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
