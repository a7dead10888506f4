// qrun -H: makes an exec_vnode from the vnodes that an operator names (manual page qrun, "-H"). A vchunk is what stands in
// one pair of parentheses.
//
// I1. A text that names a resource is used unchanged.
// I2. In a text without resources, the vchunks get the chunks of the job's schedselect: the first vchunk gets the first
//     chunk, and so on. If there are more vchunks than chunks, the chunks are used again from the first.
// I3. Only those resources of a chunk are written that vnodes provide (flags n and f). If a vchunk has several vnodes, each
//     of them provides what it has free, and the last one provides all that is still missing.

import type { Pair } from "#model/request/chunk-text.ts";
import { type ExecVnode, execVnodeText, parseExecVnode, partOf, type VnodePart } from "#model/request/exec-vnode.ts";
import { parseSelect, type SelectChunk } from "#model/request/select.ts";
import { type Amounts, amountOf, amountValue } from "../../state/amounts.ts";
import { availableAmount } from "../../state/occupancy.ts";
import type { JobAttrs, ServerState } from "../../state/state.ts";

/** The exec_vnode of a job that runs on the vnodes that `text` names. Refuses a malformed text with 15014. */
export function namedVnodes(state: ServerState, attrs: JobAttrs, text: string): string {
  const named = parseExecVnode(text);
  if (named.flat().some(({ pairs }) => pairs.length > 0)) return text;
  const chunks = chunksInTurn(parseSelect(attrs.schedselect).chunks);
  const taken = new Map<string, Amounts>();
  const exec: ExecVnode = named.map((vchunk) => shared(state, vchunk, consumables(state, chunks.next().value), taken));
  return execVnodeText(exec);
}

/** Yields each chunk as often as its count says. After the last chunk it begins again with the first, without end. */
function* chunksInTurn(chunks: readonly SelectChunk[]): Generator<SelectChunk, never> {
  for (;;) for (const chunk of chunks) for (let left = chunk.count ?? 1; left > 0; left--) yield chunk;
}

function consumables(state: ServerState, chunk: SelectChunk): readonly Pair[] {
  return chunk.pairs.filter(({ name }) => /[nf]/.test(state.resources.get(name)?.flags ?? ""));
}

/** Distributes the resources of a chunk over the vnodes of a vchunk (I3). taken: the amounts that earlier chunks use of each vnode. */
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
