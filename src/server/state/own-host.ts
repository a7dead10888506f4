// Decides whether the name of a host means the server's own host. Pure: no name is looked up.

/** The names of the server's host. host: the server's name; machine: the operating system's name of the machine, if known. */
export type OwnHost = { readonly host: string; readonly machine?: string };

/** Whether a name means the server's host: one of its names, in upper or lower case, with or without the domain, or localhost. */
export function isOwnName({ host, machine }: OwnHost, name: string): boolean {
  const asked = name.toLowerCase();
  const own = machine === undefined ? [host] : [host, machine];
  return asked === "localhost" || isLoopback(asked) || own.some((each) => sameHost(each.toLowerCase(), asked));
}

const sameHost = (a: string, b: string): boolean => a === b || a.startsWith(`${b}.`) || b.startsWith(`${a}.`);
const isLoopback = (name: string): boolean => name === "::1" || /^127(\.[0-9]{1,3}){3}$/.test(name);
