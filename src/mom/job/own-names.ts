// The names of this machine: a path with one of them as its host is a local file. The mom's node name is not enough, because several moms of one machine have
// their own names, and the submitting command uses the machine's name. Pure.

export type MachineFacts = {
  /** the name from the kernel */
  readonly hostname: string;
  /** addresses of the machine's interfaces */
  readonly addresses: readonly string[];
  /** text of /etc/hosts: names of those addresses. No name service is asked: a mom starts without one */
  readonly hosts_file: string;
};

/** Without blanks and repetitions. Addresses count as names. */
export function ownNames({ hostname, addresses, hosts_file }: MachineFacts): readonly string[] {
  const own = new Set(addresses);
  const lines = hosts_file.split("\n").map((line) => line.replace(/#.*/, "").trim().split(/\s+/));
  const known = lines.flatMap(([address = "", ...names]) => (own.has(address) || /^127\./.test(address) || address === "::1" ? names : []));
  return [...new Set(["localhost", hostname, ...addresses, ...known])].filter((name) => name !== "");
}
