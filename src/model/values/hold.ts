// Holds of a job: u user, o operator, s system, p bad password. They are shown in the order s, o, u, p; no hold is shown as `n`
// (docs/reference/commands.md 3).

const ORDER = "soup";

/** The letters in canonical order. Returns null for another letter, or for `n` together with letters. */
export function parseHolds(text: string): string | null {
  if (text === "n") return "n";
  if (text === "" || [...text].some((letter) => !ORDER.includes(letter))) return null;
  return inOrder(text);
}

/** The operator +=. */
export function addHolds(old: string, added: string): string {
  return inOrder(old + added);
}

/** The operator -=. */
export function removeHolds(old: string, removed: string): string {
  return inOrder([...old].filter((letter) => !removed.includes(letter)).join(""));
}

/** Whether any hold is set. */
export function isHeld(holds: string | undefined): boolean {
  return holds !== undefined && holds !== "" && holds !== "n";
}

function inOrder(letters: string): string {
  const holds = [...ORDER].filter((letter) => letters.includes(letter)).join("");
  return holds === "" ? "n" : holds;
}
