// The order of jobs by fairshare (docs/reference/scheduler.md 4 and 10): the next job is one of the entity that has used least of its share. This changes with
// every job that is started. The source of jobs is a tree of heaps over the resource groups: when a job of an entity has started, only the heaps from the
// entity up to the root are reordered.

import type { ShareNode } from "#model/fairshare.ts";
import { entity, ratio } from "#model/fairshare.ts";
import { present } from "#support/assert.ts";
import { heapPop, heapPush, heapReplace } from "#support/heap.ts";
import type { JobEntry, Track } from "../shapes/job-line.ts";
import type { RankContext } from "../shapes/universe.ts";
import { inStrandBefore, type Ranked } from "./ranking.ts";
import type { TrackCursor } from "./track-cursor.ts";

/** A position in a track. It goes through all jobs of the track (`jobs`) or, when the line is blocked, only through those whose comment differs (`rest`). */
export type Cursor = Ranked & {
  entry: JobEntry;
  value: number;
  readonly track: Track;
  jobs: TrackCursor | null;
  rest: Ranked[];
  /** for a track that was put off: the present key by backfill.order, and whether `rest` has all jobs of the track in that order */
  key: number;
  reordered: boolean;
};

/** Gives the best of some cursors: of all of them, or of those of the entity whose turn it is. */
export type Source = {
  best(): Cursor | undefined;
  /** Must be called when the best cursor has moved on. alive: false if the cursor has no more jobs. */
  moved(alive: boolean): void;
};

/** A resource group or an entity with jobs. below: the members of a group, as a heap with the best first. cursors: the entity's own jobs. */
type Pick = { readonly node: ShareNode; readonly parent: Pick | null; readonly below: Pick[]; readonly cursors: Cursor[] };

export function shareSource(ranks: RankContext, cursors: readonly Cursor[]): Source {
  const { fairshare } = ranks;
  let root = plant(ranks, cursors);
  let { version } = fairshare;
  return {
    best() {
      // moved() handles a change of the usage only if one job of these cursors has caused it. A job of another queue, or several jobs, have caused this one.
      if (version !== fairshare.version) {
        version = fairshare.version;
        root = plant(ranks, cursorsIn(root));
      }
      return leaf(root)?.cursors[0];
    },
    moved(alive) {
      const at = leaf(root);
      if (at === undefined) return;
      if (alive) heapReplace(at.cursors, present(at.cursors[0], "cursor"), headBefore);
      else heapPop(at.cursors, headBefore);
      for (let pick = at; pick.parent !== null; pick = pick.parent) {
        if (pick.below.length + pick.cursors.length === 0) heapPop(pick.parent.below, pickBefore);
        else heapReplace(pick.parent.below, pick, pickBefore);
      }
      // If the version has grown by one, only the job that has just started has changed the usage, and the loop above has reordered its heaps.
      if (fairshare.version === version + 1) version = fairshare.version;
    },
  };
}

function plant(ranks: RankContext, cursors: readonly Cursor[]): Pick {
  const root: Pick = { node: ranks.fairshare.root, parent: null, below: [], cursors: [] };
  const picks = new Map<ShareNode, Pick>([[root.node, root]]);
  const pickOf = (node: ShareNode): Pick => {
    let pick = picks.get(node);
    if (pick === undefined) {
      const parent = node.parent === null ? root : pickOf(node.parent);
      picks.set(node, (pick = { node, parent, below: [], cursors: [] }));
    }
    return pick;
  };
  for (const cursor of cursors) heapPush(pickOf(entity(ranks.fairshare, cursor.track.entity)).cursors, cursor, headBefore);
  grow(root, picks);
  return root;
}

/** Makes the heaps, from the leaves up, because a group is compared by its best member. */
function grow(root: Pick, picks: ReadonlyMap<ShareNode, Pick>): void {
  const children = new Map<Pick, Pick[]>();
  for (const pick of picks.values()) if (pick.parent !== null) children.set(pick.parent, [...(children.get(pick.parent) ?? []), pick]);
  const fill = (pick: Pick): void => {
    for (const child of children.get(pick) ?? []) {
      fill(child);
      heapPush(pick.below, child, pickBefore);
    }
  };
  fill(root);
}

const headBefore = (a: Cursor, b: Cursor): boolean => inStrandBefore(a.entry, b.entry);

/**
 * Returns the group or entity of the best job below `pick`. If a name is both a group and an entity, its own first job is compared with the first job of its
 * best member, and the one that is earlier in the order of jobs is taken.
 */
function leaf(pick: Pick): Pick | undefined {
  let at = pick;
  while (
    at.below.length > 0 &&
    (at.cursors.length === 0 || !headBefore(present(at.cursors[0], "cursor"), headOf(present(at.below[0], "pick"))))
  ) {
    at = present(at.below[0], "pick");
  }
  return at.cursors.length > 0 ? at : undefined;
}

const headOf = (pick: Pick): Cursor => present((leaf(pick) as Pick).cursors[0], "cursor");

/** Orders members of a group by how much of their shares they have used; if that is equal, by their best members, then by the jobs themselves. */
function pickBefore(a: Pick, b: Pick): boolean {
  let [left, right]: [Pick, Pick] = [a, b];
  for (;;) {
    const [one, other] = [ratio(left.node), ratio(right.node)];
    if (one !== other) return one < other;
    const [under, beside] = [left.below[0], right.below[0]];
    if (under === undefined || beside === undefined || left.cursors.length + right.cursors.length > 0) break;
    [left, right] = [under, beside];
  }
  return headBefore(headOf(left), headOf(right));
}

function cursorsIn(pick: Pick): Cursor[] {
  return [...pick.cursors, ...pick.below.flatMap(cursorsIn)];
}
