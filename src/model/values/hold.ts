// Holds of a job, as letters: u user, o operator, s system, p bad password. They are shown in the order s, o, u, p. If there
// is no hold, `n` is shown (docs/reference/commands.md 3).

const ORDER = "soup";

/** Parses holds. Returns the letters in the order s, o, u, p, or `n`. Returns null if the text is empty, has an unknown letter, or has `n` together with other letters. */
export function parseHolds(text: string): string | null {
  if (text === "n") return "n";
  if (text === "" || [...text].some((letter) => !ORDER.includes(letter))) return null;
  return inOrder(text);
}

/** Adds holds (operator +=). */
export function addHolds(old: string, added: string): string {
  return inOrder(old + added);
}

/** Removes holds (operator -=). */
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
