// Where the hosts of the complex take files of jobs, and what a run may do there (docs/files.md).
//
// H1. Each host tells the server at which port it takes files, and repeats this every minute. Other hosts reach it there, at the address from which it told
//     the server. After a restart, the server learns the places anew.

import { isHostNamed } from "#identity/host-name.ts";
import type { HostIdentity } from "#identity/peer.ts";
import type { FilesPlace } from "#protocol/join-link.ts";
import type { JoinAnswer, JoinQuestion } from "#protocol/schema-join.ts";
import { grantOf, type NamedHost } from "../moms/job-files.ts";
import { isOwnName } from "../state/own-host.ts";

type Kernel = Parameters<typeof grantOf>[0];
export type FilesQuestion = Extract<JoinQuestion, { readonly type: `files-${string}` }>;

export type FileHostsOptions = {
  readonly kernel: () => Kernel;
  /** whether a host of this name has a certificate */
  readonly hasHost: (name: string) => boolean;
};

const named = ({ host, role }: HostIdentity): NamedHost => ({ host, is_server: role === "server" });

export class FileHosts {
  readonly #options: FileHostsOptions;
  /** by the name in the certificate */
  readonly #places = new Map<string, { readonly address: string | null; readonly port: number }>();

  constructor(options: FileHostsOptions) {
    this.#options = options;
  }

  /** Answers a host that has shown its certificate. address: the address from which the host has connected. */
  answer(question: FilesQuestion, identity: HostIdentity, address: string): JoinAnswer {
    switch (question.type) {
      case "files-offer":
        this.#places.set(identity.host, { address: identity.role === "server" ? null : address, port: question.data.port });
        return { type: "files-heard", data: {} };
      case "files-place":
        return { type: "files-place", data: this.#placeOf(question.data.host) };
      case "files-grant": {
        const { job, run_count, from, from_server } = question.data;
        const granted = grantOf(this.#options.kernel(), { job, run_count }, { host: from, is_server: from_server }, named(identity));
        return typeof granted === "string" ? { type: "join-refused", data: { text: granted } } : { type: "files-grant", data: granted };
      }
    }
  }

  #placeOf(name: string): FilesPlace {
    const is_own = isOwnName(this.#options.kernel().config, name);
    // In a complex with two servers, each of their two hosts has a certificate with its own name, so no place has the address null.
    for (const [host, { address, port }] of this.#places)
      if ((is_own && address === null) || isHostNamed(host, name)) return { known: true, address, port };
    return { known: is_own || this.#options.hasHost(name), address: null, port: null };
  }
}
