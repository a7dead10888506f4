// Turns Markdown, as the pages of docs/ use it, into roff with the macros of man(7). Knows headings, paragraphs, lists, tables, code and inline marks;
// links become their text, because a manual page cannot follow them.
//
// R1. Text never begins a roff request, and a backslash of the text stays a backslash: everything passes through escapeText().

/** Characters that roff would print as others, or take for its own. */
const CHARACTERS = { "\\": "\\e", "^": "\\(ha", "~": "\\(ti", "'": "\\(aq", "`": "\\(ga", '"': "\\(dq" };

/** Text as it stands. exact: hyphens are minus signs, so that options and commands can be copied from the page. */
export function escapeText(text, exact = false) {
  const plain = text.replaceAll(/[\\^~'`"]/g, (character) => CHARACTERS[character]);
  const wide = plain.replaceAll(/[^\x20-\x7e\n]/gu, (character) =>
    character === "\t" ? "    " : `\\[u${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`,
  );
  return (exact ? wide.replaceAll("-", "\\-") : wide).replaceAll(/^\./gm, "\\&.");
}

/** Inline marks of one line of text: code and bold become bold, emphasis italic, links their text. */
export function inline(text) {
  const whole = text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("\\|", "|");
  const parts = whole.split(/(`[^`]+`|\*\*[^*]+\*\*|(?<![\w*])\*[^*\s][^*]*\*(?![\w*]))/);
  const made = parts.map((part, at) => {
    if (at % 2 === 0) return escapeText(part);
    if (part.startsWith("`")) return `\\fB${escapeText(part.slice(1, -1), true)}\\fR`;
    return part.startsWith("**") ? `\\fB${escapeText(part.slice(2, -2))}\\fR` : `\\fI${escapeText(part.slice(1, -1))}\\fR`;
  });
  return made.join("");
}

/** Text of several lines that is printed as it stands. */
export const verbatim = (text) => [".RS 4", ".nf", escapeText(text, true), ".fi", ".RE"];

/** Lines of roff for a piece of Markdown. */
export function roff(markdown) {
  const lines = markdown.replaceAll(/^<!--.*-->$/gm, "").split("\n");
  const made = [];
  for (let at = 0; at < lines.length; ) {
    const block = BLOCKS.find(({ first }) => first.test(lines[at]));
    let end = at + 1;
    while (end < lines.length && block.goesOn(lines[end])) end += 1;
    made.push(...block.make(lines.slice(at, end)));
    at = end;
  }
  return made;
}

const BLOCKS = [
  { first: /^\s*$/, goesOn: (line) => /^\s*$/.test(line), make: () => [] },
  { first: /^#/, goesOn: () => false, make: ([line]) => [`.SS ${inline(line.replace(/^#+ /, ""))}`] },
  { first: /^```/, goesOn: fenced(), make: (lines) => [".PP", ...verbatim(lines.filter((line) => !line.startsWith("```")).join("\n"))] },
  {
    first: /^ {4}/,
    goesOn: (line) => /^ {4}/.test(line),
    make: (lines) => [".PP", ...verbatim(lines.map((line) => line.slice(4)).join("\n"))],
  },
  { first: /^\|/, goesOn: (line) => line.startsWith("|"), make: table },
  {
    first: /^(?:[-*]|\d+\.) /,
    goesOn: (line) => /^ {2,3}\S/.test(line),
    make: ([line, ...rest]) => {
      const [, mark, text] = /^([-*]|\d+\.) +(.*)$/.exec(line);
      return [/\d/.test(mark) ? `.IP ${mark} 4` : ".IP \\(bu 2", inline([text, ...rest.map((each) => each.trim())].join(" "))];
    },
  },
  { first: /./, goesOn: (line) => /^[^\s|#`-]|^`[^`]|^-\w/.test(line), make: (lines) => [".PP", inline(lines.join(" "))] },
];

/** A fence goes on until the line after its end. */
function fenced() {
  let open = true;
  return (line) => {
    const now = open;
    if (line.startsWith("```")) open = false;
    if (!now) open = true;
    return now;
  };
}

/** Rows as tagged paragraphs: the first cell is the tag, and further cells carry the names of their columns, but for the last. */
function table(lines) {
  const [head, , ...rows] = lines.map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return rows.flatMap((row) => {
    const told = row.slice(1).map((cell, at) => ({ name: head[at + 1], cell, last: at === row.length - 2 }));
    const small = told.filter(({ cell, last }) => !last && cell !== "" && cell !== "-").map(({ name, cell }) => `${name} ${inline(cell)}`);
    const last = told.at(-1)?.cell ?? "";
    return [".TP", tag(row[0]), [small.join("; "), inline(last)].filter((text) => text !== "").join("\n.br\n") || "\\&"];
  });
}

/** A tag is one line, and never an empty one: roff would take the next line for the tag. */
function tag(cell) {
  const text = inline(cell);
  return text === "" ? "\\&" : text.includes("\\fB") ? text : `\\fB${text}\\fR`;
}
