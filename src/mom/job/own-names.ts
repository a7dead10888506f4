// The names of this machine: a path that a job gives for one of them is a local file. The mom's node name is not all: several moms of one machine have names of
// their own, and the submitting command says the machine's. Pure.

export type MachineFacts = {
  /** as the kernel tells it */
  readonly hostname: string;
  /** addresses of the machine's interfaces */
  readonly addresses: readonly string[];
  /** text of /etc/hosts: names of those addresses. A name service is not asked: a mom starts without one */
  readonly hosts_file: string;
};

/** Without blanks and repetitions. Addresses count as names. */
export function ownNames({ hostname, addresses, hosts_file }: MachineFacts): readonly string[] {
  const own = new Set(addresses);
  const lines = hosts_file.split("\n").map((line) => line.replace(/#.*/, "").trim().split(/\s+/));
  const known = lines.flatMap(([address = "", ...names]) => (own.has(address) || /^127\./.test(address) || address === "::1" ? names : []));
  return [...new Set(["localhost", hostname, ...addresses, ...known])].filter((name) => name !== "");
}
