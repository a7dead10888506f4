// qrun -H: the vnodes that an operator names become an exec_vnode (manual page qrun, "-H").
//
// I1. A specification that names a resource is used as it stands.
// I2. A specification without resources gets the chunks of the job's schedselect: the first vchunk gets the first chunk, and so on; when there are
//     more vchunks than chunks, the chunks begin again.
// I3. The resources of a chunk that vnodes give (flags n and f) are written. The vnodes of one vchunk share them: each gives what it has free, and
//     the last one gives the rest.

import type { Pair } from "#model/request/chunk-text.ts";
import { type ExecVnode, execVnodeText, parseExecVnode, partOf, type VnodePart } from "#model/request/exec-vnode.ts";
import { parseSelect, type SelectChunk } from "#model/request/select.ts";
import { type Amounts, amountOf, amountValue } from "../../state/amounts.ts";
import { availableAmount } from "../../state/occupancy.ts";
import type { JobAttrs, ServerState } from "../../state/state.ts";

/** The exec_vnode of a job that runs on the vnodes of `text`. Refuses a malformed text with 15014. */
export function namedVnodes(state: ServerState, attrs: JobAttrs, text: string): string {
  const named = parseExecVnode(text);
  if (named.flat().some(({ pairs }) => pairs.length > 0)) return text;
  const chunks = chunksInTurn(parseSelect(attrs.schedselect).chunks);
  const taken = new Map<string, Amounts>();
  const exec: ExecVnode = named.map((vchunk) => shared(state, vchunk, consumables(state, chunks.next().value), taken));
  return execVnodeText(exec);
}

/** Yields each chunk as often as its count says, and then begins again without end. */
function* chunksInTurn(chunks: readonly SelectChunk[]): Generator<SelectChunk, never> {
  for (;;) for (const chunk of chunks) for (let left = chunk.count ?? 1; left > 0; left--) yield chunk;
}

function consumables(state: ServerState, chunk: SelectChunk): readonly Pair[] {
  return chunk.pairs.filter(({ name }) => /[nf]/.test(state.resources.get(name)?.flags ?? ""));
}

/** taken: the amounts that earlier chunks take of each vnode. */
function shared(state: ServerState, vchunk: readonly VnodePart[], pairs: readonly Pair[], taken: Map<string, Amounts>): VnodePart[] {
  const left: Amounts = new Map(pairs.map(({ name, text }) => [name, amountOf(state.resources.get(name), text) ?? 0]));
  return vchunk.map(({ vnode }, at) => {
    const last = at === vchunk.length - 1;
    const mine = taken.get(vnode) ?? new Map<string, number>();
    taken.set(vnode, mine);
    const given: [string, string][] = [];
    for (const [name, wanted] of left) {
      const amount = last ? wanted : Math.min(wanted, freeAmount(state, vnode, name) - (mine.get(name) ?? 0));
      if (amount <= 0) continue;
      mine.set(name, (mine.get(name) ?? 0) + amount);
      left.set(name, wanted - amount);
      given.push([name, String(amountValue(state.resources.get(name), amount))]);
    }
    return partOf(vnode, given);
  });
}

function freeAmount(state: ServerState, name: string, resource: string): number {
  const vnode = state.vnodes.get(name);
  if (vnode === undefined) return 0;
  return (availableAmount(state, vnode, resource) ?? 0) - (vnode.assigned.get(resource) ?? 0);
}
