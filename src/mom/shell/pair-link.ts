// The mom's connection to the active one of two servers (docs/standby.md). The mom is connected to one server, and asks the
// other one from time to time whether it leads. The standby listens on no port, so the question costs next to nothing.
//
// P1. The mom does not obey the welcome of a server that was replaced (protocol/failover/follower.ts). The mom writes the leader that it obeys into
//     mom_priv/leader, so that a mom that is started again remembers it.
// P2. The core of the mom sees one connection. When the mom goes over to the other server, the connection ends for the core and
//     is made again.

import { connect } from "node:net";
import { type Following, followNobody, judgeOther, judgeWelcome } from "#protocol/failover/follower.ts";
import { type Leader, leaderText, parseLeader } from "#protocol/failover/leader.ts";
import { LeaderNote, leaderIn, readLeader } from "#protocol/failover/leader-file.ts";
import { messageOf } from "#support/caught.ts";
import type { ServerAt } from "#support/conf.ts";
import type { ServerEnd, ServerLink } from "../driver/ports.ts";

/** How often the other server is asked: while the mom has a server, and while it has none. */
const ASK_MS = 2000;
const ASK_SOON_MS = 500;
/** How long a server has to accept the connection for the question. */
const REACH_MS = 3000;

export type PairLinkOptions = {
  readonly servers: readonly [ServerAt, ServerAt];
  /** mom_priv */
  readonly directory: string;
  /** Connects to one of the servers and stays connected. Throws an error for the log while this host has no certificate. */
  dial(at: ServerAt, end: ServerEnd): ServerLink;
  /** Asks a server whether it leads. Resolves with the text of its leader. Rejects if it does not answer. */
  ask(at: ServerAt): Promise<string | null>;
  /** called when the mom goes over to that server */
  moved(at: ServerAt): void;
  fault(text: string): void;
};

/** Makes the connection. */
export const connectPair = (options: PairLinkOptions, end: ServerEnd): ServerLink => new PairLink(options, end);

class PairLink implements ServerLink {
  readonly #options: PairLinkOptions;
  readonly #end: ServerEnd;
  readonly #note: LeaderNote;
  #following: Following;
  /** index of the server of the present connection */
  #at = 0;
  #link: ServerLink | null = null;
  #is_open = false;
  #is_welcomed = false;
  /** whether frames are dropped, because the mom does not obey the server of its present connection */
  #is_deaf = false;
  #is_closed = false;
  #said = "";

  constructor(options: PairLinkOptions, end: ServerEnd) {
    this.#options = options;
    this.#end = end;
    this.#note = new LeaderNote(options.directory, options.fault);
    this.#following = followNobody(readLeader(options.directory));
    setImmediate(() => this.#dial());
    this.#askLater();
  }

  get connected(): boolean {
    return this.#link?.connected === true;
  }

  send(frame: Parameters<ServerLink["send"]>[0]): void {
    this.#link?.send(frame);
  }

  reconnect(): void {
    this.#link?.reconnect();
  }

  close(): void {
    this.#is_closed = true;
    this.#note.close();
    this.#link?.close();
  }

  #dial(): void {
    if (this.#is_closed) return;
    const at = this.#options.servers[this.#at === 0 ? 0 : 1];
    this.#options.moved(at);
    const isPresent = (): boolean => this.#link === link && !this.#is_closed;
    let link: ServerLink | null = null;
    try {
      link = this.#options.dial(at, {
        opened: () => {
          if (!isPresent()) return;
          this.#is_deaf = false;
          this.#is_open = true;
          this.#end.opened();
        },
        frame: (type, data) => {
          if (isPresent()) this.#frame(type, data);
        },
        closed: (why) => {
          if (isPresent()) this.#lost(why);
        },
        // Nobody listens at this server's address: the other server may be active, so this proves nothing.
        absent: () => undefined,
      });
      this.#link = link;
    } catch (error) {
      // This host has no certificate yet: the server makes it when it begins to lead.
      this.#complain(messageOf(error));
    }
  }

  #lost(why: string): void {
    const was_open = this.#is_open;
    this.#is_open = false;
    this.#is_welcomed = false;
    if (was_open) this.#end.closed(why);
  }

  /** Ends the present connection and makes one to the other server. */
  #goOver(why: string): void {
    const former = this.#link;
    this.#link = null;
    former?.close();
    this.#lost(why);
    this.#at = 1 - this.#at;
    this.#dial();
  }

  #frame(type: string, data: unknown): void {
    if (this.#is_deaf) return;
    if (type !== "mom-welcome") return this.#end.frame(type, data);
    const { judgement, next } = judgeWelcome(this.#following, leaderIn(data));
    if (judgement === "obey") {
      this.#know(next);
      this.#is_welcomed = true;
      return this.#end.frame(type, data);
    }
    this.#complain(
      judgement === "leave" ? "the server was replaced by the other one" : "the server has another database than the one known",
    );
    if (judgement === "leave") return this.#goOver("the server was replaced by the other one");
    // Commands may have arrived together with the welcome: they must be dropped.
    this.#is_deaf = true;
    this.#link?.reconnect();
  }

  #know(next: Following): void {
    const { known } = this.#following;
    this.#following = next;
    if (next.known === null || (known !== null && leaderText(known) === leaderText(next.known))) return;
    this.#note.keep(next.known);
  }

  #askLater(): void {
    setTimeout(() => void this.#ask().finally(() => this.#askLater()), this.#is_welcomed ? ASK_MS : ASK_SOON_MS).unref();
  }

  async #ask(): Promise<void> {
    if (this.#is_closed) return;
    if (this.#link === null) this.#dial();
    const asked = this.#at;
    const other = this.#options.servers[asked === 0 ? 1 : 0];
    const said = (await isReached(other)) ? await this.#leaderAt(other) : undefined;
    if (this.#is_closed || asked !== this.#at) return;
    const { goes, next } = judgeOther(this.#following, said, this.#is_welcomed);
    // A server that says that it leads is only a reason to connect to it: its leader is noted when it has welcomed this mom.
    this.#following = { ...this.#following, sought: next.sought };
    if (goes) this.#goOver(`the server at ${other.host}, port ${other.port}, leads now`);
  }

  async #leaderAt(at: ServerAt): Promise<Leader | null | undefined> {
    try {
      const text = await this.#options.ask(at);
      return text === null ? null : parseLeader(text);
    } catch {
      return undefined;
    }
  }

  /** Logs a text unless it is the one that was logged last. */
  #complain(text: string): void {
    if (text !== this.#said) this.#options.fault(text);
    this.#said = text;
  }
}

/** Whether somebody listens at that place. */
function isReached(at: ServerAt): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: at.host, port: at.port });
    const tell = (is_there: boolean): void => {
      socket.removeAllListeners();
      socket.on("error", () => undefined);
      socket.destroy();
      resolve(is_there);
    };
    socket.setTimeout(REACH_MS, () => tell(false));
    socket.once("connect", () => tell(true));
    socket.once("error", () => tell(false));
  });
}
