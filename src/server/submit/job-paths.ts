// Output_Path and Error_Path in the stored form: host:/absolute/path (docs/reference/files.md 5). Default: <job name>.o<number> in the directory of the submission.

const GIVEN = /^(?:([^/:\s]+):)?(.*)$/s;

export type PathContext = { readonly host: string; readonly workdir: string };

/** suffix: `o12` or `e12`. */
export function defaultPath({ host, workdir }: PathContext, name: string, suffix: string): string {
  return `${host}:${workdir === "/" ? "" : workdir}/${name}.${suffix}`;
}

/** The given path, completed with host and directory. A slash at the end stays, because the name follows it. */
export function completePath(text: string, { host, workdir }: PathContext): string {
  const [, given_host, path = ""] = GIVEN.exec(text) ?? [];
  return `${given_host ?? host}:${path.startsWith("/") ? path : `${workdir === "/" ? "" : workdir}/${path}`}`;
}
