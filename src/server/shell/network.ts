// The server's TCP port for other hosts (docs/identity.md). It is open only in a complex that has a certificate authority.
//
// N1. While the authority cannot say which hosts are accepted, the port is closed.
// N2. Every linked host has the list of revoked certificates. It gets the list after its first accepted frame, not before,
//     because a daemon that has received anything counts its connection as good (daemon-link.ts D1).
// N3. A list that cannot be written to the disk is sent to the hosts nevertheless, and the server tries to write it again at
//     each review.

import { keepRevoked } from "#identity/files/revoked.ts";
import type { HostIdentity } from "#identity/peer.ts";
import { sparingly } from "#protocol/bounds/sparingly.ts";
import { type ComplexSettings, type HostSched, type HostSight, REVOKED, type Revoked, type StandbySecrets } from "#protocol/join-link.ts";
import { type ProveUser, userProofs } from "#protocol/proof/user-proof.ts";
import { JOIN_QUESTIONS, type JoinAnswer, type JoinQuestion, parseQuestion } from "#protocol/schema-join.ts";
import { listenUdp, type UdpServer } from "#protocol/udp/udp-socket.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import type { LinkHandlers, ServerLink } from "#protocol/wire/ipc-transport.ts";
import type { Limits } from "#protocol/wire/limits.ts";
import { isRemoteUser } from "#protocol/wire/link-peer.ts";
import type { Shares } from "#protocol/wire/share.ts";
import { listenEverywhere, type ProofHooks, type Question, type TlsLinkServer } from "#protocol/wire/tls-listener.ts";
import { messageOf, nameOf } from "#support/caught.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { CertificateAuthority } from "./authority.ts";
import type { FilesQuestion } from "./file-hosts.ts";
import type { Door } from "./identity-port.ts";

/** How often the certificates of open links are checked, and how often a port that could not be opened is tried again. */
const REVIEW_MS = 60_000;

export type NetworkOptions = {
  /** PBS_HOME */
  readonly home: string;
  /** what a new host must know of the complex */
  readonly settings: ComplexSettings;
  /** frame types of links */
  readonly types: readonly string[];
  readonly handlers: LinkHandlers;
  /** what each peer holds of the limits on links, counted over all listeners of the server (wire/share.ts) */
  readonly shares: Shares;
  /** answer: sends a datagram back */
  readonly onDatagram: (bytes: Uint8Array, answer: (bytes: Uint8Array) => void) => void;
  /** number of datagrams that did not count, by reason */
  readonly dropped: { readonly [why: string]: number };
  /** commands sent to the multicast group */
  readonly multicast: { readonly commands: number; readonly datagrams: number; readonly bytes: number; readonly copies: number };
  /** determines the user of a client on another host */
  readonly proveUser: ProveUser;
  readonly now_s: () => number;
  readonly note: (event: number, text: string) => void;
  /** what the server knows of a host */
  readonly sightOf: (host: string) => HostSight;
  /** the schedulers of a host */
  readonly schedsOf: (host: string) => readonly HostSched[];
  /** answers questions about files of jobs */
  readonly files: (question: FilesQuestion, identity: HostIdentity, address: string) => JoinAnswer;
  /** called when certificates were checked: from time to time, and when some were revoked */
  readonly reviewed: () => void;
  /** links that the server has made itself, to schedulers on other hosts */
  readonly dialled: () => readonly ServerLink[];
  /** resolves when the files of the authority are stored where the other server of the complex finds them; at once if there is no other server */
  readonly kept: () => Promise<void>;
  /** the leader, when it has confirmed that it still leads (src/protocol/failover/leader.ts); null: the complex has one server */
  readonly leader: () => Promise<string | null>;
  /** what the secondary server of the complex needs besides its certificate; null: that host is not the secondary */
  readonly standbyFor: (host: string) => StandbySecrets | null;
};

const noStandby = (host: string, is_named: boolean): string =>
  is_named
    ? `${host} is not the host that PBS_SECONDARY of the server's pbs.conf names`
    : `a standby server needs a token that was made for its name: partita cert token --host ${host}`;
/** identity null: the peer has shown no certificate. */
type QuestionAsker = { readonly identity: HostIdentity | null; readonly address: string };

const isAboutFiles = (question: JoinQuestion): question is FilesQuestion => question.type.startsWith("files-");

export class HostNetwork implements Door {
  readonly #options: NetworkOptions;
  readonly #limits: Partial<Limits> = {};
  readonly #noteRefusal: (text: string) => void;
  #authority: CertificateAuthority | null = null;
  #listener: TlsLinkServer | null = null;
  #udp: UdpServer | null = null;
  /** the last line that was logged about dropped datagrams */
  #told_dropped = "";
  /** number of commands to the multicast group when their numbers were logged last */
  #told_commands = 0;
  #opening: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;
  /** the certificate that is shown to new connections */
  #shown = "";
  /** the list of revoked certificates for hosts, and the links over which it was sent (N2) */
  #revoked: Revoked = { certificates: [] };
  /** the list that was written to the disk last */
  #written: Revoked | null = null;
  readonly #told = new WeakSet<ServerLink>();

  constructor(options: NetworkOptions) {
    this.#options = options;
    this.#noteRefusal = sparingly((text) => options.note(LOG_EVENT.SECURITY, text));
  }

  open(authority: CertificateAuthority): Promise<void> {
    this.#authority = authority;
    this.#timer ??= setInterval(() => this.changed(), REVIEW_MS).unref();
    if (this.#listener !== null) return Promise.resolve();
    this.#opening ??= this.#listen(authority).finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  /** Checks the server's certificate and those of open links. */
  changed(): void {
    const authority = this.#authority;
    if (authority === null) return;
    this.#options.reviewed();
    // The steps that need no disk come first, and a fault of the disk in one step prevents no other step (N3).
    this.#try(() => this.#listener?.review());
    this.#try(() => this.#tellRevoked(authority));
    this.#try(() => this.#writeRevoked());
    this.#try(() => this.#renew(authority));
    this.#try(() => authority.renewMember());
    void this.#options.kept().catch((error: unknown) => this.#fault(error));
    this.#try(() => this.#show(authority));
    if (this.#listener === null) this.open(authority).catch(() => undefined);
    else if (this.#udp === null) void this.#listenUdp();
    this.#tellDropped();
    this.#tellMulticast();
  }

  /** Does one step. Its fault is logged. */
  #try(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#fault(error);
    }
  }

  #renew(authority: CertificateAuthority): void {
    if (!authority.needsServerCertificate()) return;
    authority.renewServer();
    this.#options.note(LOG_EVENT.SYSTEM, "the server's certificate was renewed");
  }

  /** Sends the list to all linked hosts if it has changed. */
  #tellRevoked(authority: CertificateAuthority): void {
    const certificates = authority.revocations();
    if (JSON.stringify(certificates) === JSON.stringify(this.#revoked.certificates)) return;
    this.#revoked = { certificates };
    for (const link of [...(this.#listener?.links ?? []), ...this.#options.dialled()])
      if (this.#told.has(link)) link.send(REVOKED, this.#revoked);
  }

  /**
   * Writes the list to the disk for the mom of this host, to which other moms of a job connect. Does nothing if that list has
   * been written. Throws if it cannot be written: the next call tries again (N3).
   */
  #writeRevoked(): void {
    const revoked = this.#revoked;
    if (revoked === this.#written) return;
    if (revoked.certificates.length > 0) keepRevoked(this.#options.home, revoked.certificates, this.#options.now_s());
    this.#written = revoked;
  }

  /** Called when a host has sent a frame: sends it the list, unless it has it (N2). */
  heard(link: ServerLink): void {
    // The list is not sent to users' commands, which read the list that their host keeps.
    if (!link.open || this.#told.has(link) || isRemoteUser(link.peer)) return;
    this.#told.add(link);
    if (this.#revoked.certificates.length > 0) link.send(REVOKED, this.#revoked);
  }

  #show(authority: CertificateAuthority): void {
    const credentials = authority.serverCredentials();
    const text = credentials.certificate + credentials.authority;
    if (text === this.#shown) return;
    this.#listener?.show(credentials);
    this.#shown = text;
  }

  setLimits(changed: Partial<Limits>): void {
    Object.assign(this.#limits, changed);
    this.#listener?.setLimits(changed);
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#udp?.close();
    this.#udp = null;
    await this.#listener?.close();
  }

  /** Logs the numbers of dropped datagrams if they have changed since the last time. */
  #tellDropped(): void {
    const counts = Object.entries(this.#options.dropped).filter(([, count]) => count > 0);
    const text = counts.map(([why, count]) => `${count} ${why}`).join(", ");
    if (text !== this.#told_dropped) this.#options.note(LOG_EVENT.SECURITY, `datagrams dropped since the start of the server: ${text}`);
    this.#told_dropped = text;
  }

  /** Logs the numbers of commands to the multicast group if they have changed since the last time. */
  #tellMulticast(): void {
    const { commands, datagrams, bytes, copies } = this.#options.multicast;
    if (commands === this.#told_commands) return;
    this.#told_commands = commands;
    const text = `multicast since the start of the server: ${commands} commands, ${datagrams} datagrams of ${bytes} bytes`;
    this.#options.note(LOG_EVENT.SYSTEM, `${text}, ${copies} repeated over connections`);
  }

  /** Opens the port for datagrams. Without it moms report over their connections, so a fault is logged and tried again later. */
  async #listenUdp(): Promise<void> {
    const { settings, onDatagram, note } = this.#options;
    try {
      const opened = await listenUdp(settings.port, onDatagram);
      if (this.#closed || this.#udp !== null) return opened.close();
      this.#udp = opened;
      note(LOG_EVENT.SYSTEM, `listening on UDP port ${settings.port} for reports of other hosts`);
    } catch (error) {
      note(LOG_EVENT.ERROR, `UDP port ${settings.port} cannot be opened: ${messageOf(error)}`);
    }
  }

  async #listen(authority: CertificateAuthority): Promise<void> {
    const { settings, types, handlers, shares, proveUser, note } = this.#options;
    const opened = await listenEverywhere({
      port: settings.port,
      types,
      protocol: ALPN.link,
      credentials: authority.serverCredentials(),
      limits: this.#limits,
      shares,
      ...handlers,
      onFrame: (link: ServerLink, type: string, data: unknown) => {
        handlers.onFrame(link, type, data);
        this.heard(link);
      },
      proofs: (limits: Limits, hooks: ProofHooks) => userProofs(limits, proveUser, hooks),
      fault: (identity: HostIdentity) => authority.fault(identity),
      questions: {
        types: JOIN_QUESTIONS,
        answer: (question, identity, address) => this.#answer(authority, question, { identity, address }),
      },
    });
    if (this.#closed) return opened.close();
    this.#listener = opened;
    this.#shown = "";
    this.#revoked = { certificates: authority.revocations() };
    this.#try(() => this.#writeRevoked());
    note(LOG_EVENT.SYSTEM, `listening on TCP port ${settings.port} for other hosts`);
    await this.#listenUdp();
  }

  async #answer(authority: CertificateAuthority, question: Question, asker: QuestionAsker): Promise<JoinAnswer> {
    const parsed = parseQuestion(question.type, question.data);
    if (!parsed.ok) return this.#refused(parsed.text);
    try {
      if (parsed.value.type === "leader") return await this.#tellLeader(asker.identity);
      if (isAboutFiles(parsed.value)) return await this.#tellOfFiles(parsed.value, asker);
      // A server that another one has replaced signs nothing, and says nothing about hosts and schedulers.
      await this.#options.leader();
      const answer = this.#reply(authority, parsed.value, asker.identity);
      await this.#options.kept();
      return answer;
    } catch (error) {
      if (nameOf(error) === "AuthorityError") return this.#refused(messageOf(error));
      this.#fault(error);
      return { type: "join-refused", data: { text: "the server cannot sign certificates now: see its log" } };
    }
  }

  /** Answers that this server leads. First checks whether another server has replaced it. */
  async #tellLeader(identity: HostIdentity | null): Promise<JoinAnswer> {
    if (identity === null) return this.#refused("leader: the host has shown no certificate");
    return { type: "leader", data: { leader: await this.#options.leader() } };
  }

  /** Answers a question about files of jobs. First checks whether another server has replaced this one. */
  async #tellOfFiles(question: FilesQuestion, { identity, address }: QuestionAsker): Promise<JoinAnswer> {
    if (identity?.role !== "host" && identity?.role !== "server")
      return this.#refused(`${question.type}: the peer has shown no certificate of a host`);
    await this.#options.leader();
    return this.#options.files(question, identity, address);
  }

  #reply(
    authority: CertificateAuthority,
    question: Exclude<JoinQuestion, FilesQuestion | { type: "leader" }>,
    identity: HostIdentity | null,
  ): JoinAnswer {
    const { settings, note, now_s } = this.#options;
    if (question.type === "join") {
      const stands_by = question.data.standby === true;
      const { standbyFor } = this.#options;
      // The secrets of the complex leave only for the host that pbs.conf names, with a token that was made for that host.
      const { host, ...signed } = authority.join(question.data, (name, is_named) =>
        stands_by && !(is_named && standbyFor(name) !== null) ? noStandby(name, is_named) : null,
      );
      const standby = stands_by ? standbyFor(host) : null;
      note(LOG_EVENT.SECURITY, `host ${host} joined with token ${question.data.token}`);
      // Ends the links that use earlier certificates of the host.
      this.#listener?.review();
      return { type: "joined", data: { ...signed, now_s: now_s(), settings, ...(standby === null ? {} : { standby }) } };
    }
    if (identity === null) return this.#refused(`${question.type}: the host has shown no certificate`);
    // Every user of a host can show the host's certificate for users. Such a certificate therefore does not prove that the peer is the host.
    const wanted = question.type === "user" ? "login" : "host";
    if (question.type !== "check" && identity.role !== wanted)
      return this.#refused(`the certificate of ${identity.host} is none ${wanted === "host" ? "of a host" : "for users"}`);
    switch (question.type) {
      case "scheds":
        return { type: "scheds", data: { scheds: this.#options.schedsOf(identity.host) } };
      case "check":
        return {
          type: "checked",
          data: {
            now_s: now_s(),
            authorities: authority.fingerprints,
            revoked: authority.revokedServers(),
            ...(identity.role === "host" ? { host: this.#options.sightOf(identity.host) } : {}),
          },
        };
      case "renew": {
        const signed = authority.renew(identity, question.data.request);
        note(LOG_EVENT.SECURITY, `the certificate of host ${identity.host} was renewed`);
        return { type: "renewed", data: signed };
      }
      case "login": {
        const signed = authority.login(identity, question.data.request);
        note(LOG_EVENT.SECURITY, `host ${identity.host} has a certificate for its users`);
        return { type: "renewed", data: signed };
      }
      case "user": {
        const signed = authority.user(identity, question.data);
        note(LOG_EVENT.SECURITY, `user ${signed.user} got a certificate on host ${identity.host} with token ${question.data.token}`);
        return { type: "user-signed", data: signed };
      }
    }
  }

  #refused(text: string): JoinAnswer {
    this.#noteRefusal(`a certificate is refused: ${text}`);
    return { type: "join-refused", data: { text: text.slice(0, 1000) } };
  }

  #fault(error: unknown): void {
    this.#options.note(LOG_EVENT.ERROR, `certificates: ${messageOf(error)}`);
  }
}
