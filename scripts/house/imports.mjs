// Figures about who imports whom. A source is {path, imports: [{path, typeOnly}]}.

import { dirname } from "node:path";

/** Folders with their number of sources, the fullest first. */
export function foldersByFiles(sources) {
  const counts = new Map();
  for (const { path } of sources) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  return [...counts].map(([folder, files]) => ({ folder, files })).sort((a, b) => b.files - a.files);
}

/**
 * Imports inside a top folder that run from a lower floor to a higher one, as `file -> file`; undefined when its README draws no floors.
 * floors: names of subfolders by top folder, the highest first (folders.mjs); `.` stands for the sources of the top folder itself, which are above all
 * floors where it is not drawn.
 */
export function arrowsUp(sources, top, floors) {
  const order = floors.get(top);
  if (order === undefined) return undefined;
  const height = (path) => {
    const [first, ...rest] = path.slice(top.length + 1).split("/");
    const at = order.indexOf(rest.length === 0 ? "." : first);
    return at < 0 ? order.length : order.length - 1 - at;
  };
  return inside(sources, top)
    .filter(([from, to]) => height(to) > height(from))
    .map(([from, to]) => `${from} -> ${to}`);
}

function inside(sources, top) {
  return sources
    .filter(({ path }) => path.startsWith(`${top}/`))
    .flatMap(({ path, imports }) => imports.filter((each) => each.path.startsWith(`${top}/`)).map((each) => [path, each.path]));
}

/** Pairs of folders of which each imports the other, types counted, as `folder <-> folder`. */
export function mutualPairs(sources) {
  const arrows = new Set(sources.flatMap(({ path, imports }) => imports.map((each) => `${dirname(path)} ${dirname(each.path)}`)));
  return [...arrows]
    .map((arrow) => arrow.split(" "))
    .filter(([from, to]) => from < to && arrows.has(`${to} ${from}`))
    .map(([from, to]) => `${from} <-> ${to}`)
    .sort();
}

/** Import cycles: the strongly connected groups of more than one source, the largest first (Tarjan 1972). */
export function cyclesOf(sources, { withTypes }) {
  const next = new Map(
    sources.map(({ path, imports }) => [path, imports.filter((each) => withTypes || !each.typeOnly).map((each) => each.path)]),
  );
  const numbers = new Map();
  const lows = new Map();
  const open = [];
  const cycles = [];
  const visit = (path) => {
    numbers.set(path, numbers.size);
    lows.set(path, numbers.get(path));
    open.push(path);
    for (const to of next.get(path) ?? []) {
      if (!next.has(to)) continue;
      if (!numbers.has(to)) visit(to);
      if (open.includes(to)) lows.set(path, Math.min(lows.get(path), lows.get(to)));
    }
    if (lows.get(path) !== numbers.get(path)) return;
    const group = open.splice(open.indexOf(path));
    if (group.length > 1) cycles.push(group.sort());
  };
  for (const path of next.keys()) if (!numbers.has(path)) visit(path);
  return cycles.sort((a, b) => b.length - a.length);
}
