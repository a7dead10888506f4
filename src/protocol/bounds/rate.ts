// Limits how often something happens per second, by waiting. A bucket holds as many tokens as events may happen in one second, and each event takes one. While the
// bucket is empty, its members wait.

/** Interval at which an empty bucket is refilled. */
const REFILL_MS = 50;

export type RateBucket<Member> = {
  /** Whether something may happen now. If not, the member is told when it may. */
  hasSome(member: Member): boolean;
  /** counts one */
  spend(): void;
  /** the member waits no longer */
  leave(member: Member): void;
  /** calls `work` when the bucket is full, so that a new one would hold no more */
  whenFull(work: () => void): void;
};

/** perSecond: read at each use. tell: called for each member that waits, when there is some again. */
export function rateBucket<Member>(perSecond: () => number, tell: (member: Member) => void): RateBucket<Member> {
  const waiting = new Set<Member>();
  let left = perSecond();
  let refilled_ms = performance.now();
  let timer: NodeJS.Timeout | null = null;
  const stop = (): void => {
    if (timer !== null) clearInterval(timer);
    timer = null;
  };
  const refill = (): void => {
    const now_ms = performance.now();
    const most = perSecond();
    left = Math.min(most, left + ((now_ms - refilled_ms) / 1000) * most);
    refilled_ms = now_ms;
  };
  const look = (): void => {
    refill();
    if (left <= 0) return;
    stop();
    const members = [...waiting];
    waiting.clear();
    for (const member of members) tell(member);
  };
  return {
    hasSome(member) {
      if (left > 0) return true;
      refill();
      if (left > 0) return true;
      waiting.add(member);
      timer ??= setInterval(look, REFILL_MS).unref();
      return false;
    },
    spend() {
      left--;
    },
    whenFull(work) {
      refill();
      const most = perSecond();
      if (left >= most) return work();
      setTimeout(() => this.whenFull(work), Math.ceil((1000 * (most - left)) / most)).unref();
    },
    leave(member) {
      waiting.delete(member);
      if (waiting.size === 0) stop();
    },
  };
}
