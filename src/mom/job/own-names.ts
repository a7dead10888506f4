// The names of this machine. A path whose host is one of these names is a local file. The mom's node name is not enough: several moms of one machine have
// different node names, and submitting commands use the machine's name. Pure.

export type MachineFacts = {
  /** the host name that the kernel gives */
  readonly hostname: string;
  /** addresses of the machine's interfaces */
  readonly addresses: readonly string[];
  /** text of /etc/hosts, which has names for the addresses. No name service is asked, because a mom must be able to start without one */
  readonly hosts_file: string;
};

/** Returns the names and addresses of this machine, each once. */
export function ownNames({ hostname, addresses, hosts_file }: MachineFacts): readonly string[] {
  const own = new Set(addresses);
  const lines = hosts_file.split("\n").map((line) => line.replace(/#.*/, "").trim().split(/\s+/));
  const known = lines.flatMap(([address = "", ...names]) => (own.has(address) || /^127\./.test(address) || address === "::1" ? names : []));
  return [...new Set(["localhost", hostname, ...addresses, ...known])].filter((name) => name !== "");
}
