// Questions of hosts to the server about certificates, schedulers and files. Each has its own TLS connection with one frame and one answer
// (wire/tls-listener.ts). Certificates and requests are PEM. The frame `revoked` goes over links between hosts: the server
// sends it after the first frame of a daemon that it accepts, and whenever the list grows.

import type { Revocation } from "#identity/revocations.ts";
import type { Datagrams } from "./hosts-view.ts";

/**
 * certificates that hosts must refuse. leader: in the first frame of a server to a scheduler on another host, the leader that the
 * server follows (failover/leader.ts); absent: in all other frames, and where the complex has one server
 */
export type Revoked = { readonly certificates: readonly Revocation[]; readonly leader?: string };
/** The type of the frame with this data. */
export const REVOKED = "revoked";

/** What a new host must know of its complex. server: PBS_SERVER; port: PBS_BATCH_SERVICE_PORT. */
export type ComplexSettings = {
  readonly server: string;
  readonly port: number;
  readonly mode: "user" | "system";
  /** PBS_PRIMARY and PBS_SECONDARY of a complex with two servers */
  readonly pair?: { readonly primary: string; readonly secondary: string };
};

/** What a standby server needs. key: opens the files that both servers share, 64 hexadecimal digits; database: the text of database.conf. */
export type StandbySecrets = { readonly key: string; readonly database: string };

export type HostToAuthority = {
  /** asked by a host without a certificate. token, secret: hexadecimal digits, as in its token (src/identity/token.ts) */
  join: {
    readonly version: string;
    readonly token: string;
    readonly secret: string;
    readonly request: string;
    /** the host is to have the standby server of the complex */
    readonly standby?: true;
  };
  /** asked by a host that has shown its present certificate: a new certificate */
  renew: { readonly version: string; readonly request: string };
  /** asked by such a host: a certificate for the commands of its users */
  login: { readonly version: string; readonly request: string };
  /** asked by a user of a host that has shown the certificate for its users */
  user: { readonly version: string; readonly token: string; readonly secret: string; readonly request: string };
  /** asked by a host that has shown its present certificate: does the server accept this host? */
  check: { readonly version: string };
  /** asked by such a host: which schedulers belong to it? */
  scheds: { readonly version: string };
  /** asked by such a host: does this server lead, and since which term? */
  leader: { readonly version: string };
  /** asked by such a host: it takes and gives files of jobs at this port (docs/files.md) */
  "files-offer": { readonly version: string; readonly port: number };
  /** asked by such a host: where does another host take files? */
  "files-place": { readonly version: string; readonly host: string };
  /**
   * asked by a host that takes files: what may this run of a job write and read here? from: the host that says that it has the run; from_server: this host has
   * shown the server's certificate
   */
  "files-grant": {
    readonly version: string;
    readonly job: string;
    readonly run_count: number;
    readonly from: string;
    readonly from_server: boolean;
  };
};
/**
 * Where a host takes files. known: it is a host of the complex. address: null: it is the server's host. port null: the server has not heard where the host takes
 * files.
 */
export type FilesPlace = { readonly known: boolean; readonly address: string | null; readonly port: number | null };
/**
 * What a run may do with files of a host, as its owner. put: paths that it may write; names: for each of these paths, the names and patterns that its files have
 * if the path is that of a directory (a server of an earlier release does not say them: any); get: paths and patterns that the run may read.
 */
export type FilesGrant = {
  readonly user: string;
  readonly group: string;
  readonly put: readonly string[];
  readonly names?: readonly (readonly string[])[];
  readonly get: readonly string[];
};
/** A mom of another host, and where it accepts connections of other moms. */
export type OtherMom = { readonly host: string; readonly address: string; readonly port: number };
/**
 * What the server knows of the host that asks. connected: its mom is connected; datagrams: as in HostView; others: the moms of other hosts, without that of the
 * server's host.
 */
export type HostSight = { readonly connected: boolean; readonly datagrams: Datagrams | null; readonly others: readonly OtherMom[] };
/** A scheduler of a host. port: its sched_port; null: not set; user: its sched_user; absent: not set, or the server is of an earlier release */
export type HostSched = { readonly name: string; readonly port: number | null; readonly user?: string };

export type AuthorityToHost = {
  /** now_s: the server's clock, epoch seconds */
  joined: {
    readonly certificate: string;
    readonly authority: string;
    readonly now_s: number;
    readonly settings: ComplexSettings;
    readonly standby?: StandbySecrets;
  };
  /** user: the name of the user whose certificate it is */
  "user-signed": { readonly certificate: string; readonly authority: string; readonly user: string };
  /** revoked: certificates of the server, for hosts without a mom's link; authorities: fingerprints of the authorities that hosts should trust */
  checked: {
    readonly now_s: number;
    readonly authorities: readonly string[];
    readonly revoked: readonly Revocation[];
    /** only for a host that has shown its own certificate, not a user's certificate */
    readonly host?: HostSight;
  };
  renewed: { readonly certificate: string; readonly authority: string };
  scheds: { readonly scheds: readonly HostSched[] };
  /** the text of a leader (failover/leader.ts); null: the complex has one server */
  leader: { readonly leader: string | null };
  "files-heard": Record<string, never>;
  "files-place": FilesPlace;
  "files-grant": FilesGrant;
  "join-refused": { readonly text: string };
};
