// The sources of src/ as the figures need them: imports, functions and casts, read from TypeScript's own syntax tree.

import { existsSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { SyntaxKind } from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";
import { ROOT } from "../lib/paths.mjs";

const FUNCTIONS = new Set([
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.ArrowFunction,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.Constructor,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
]);

/** Every source of src/, sorted: {path, imports: [{path, typeOnly}], functions: [{name, line, lines}], casts: [line]}. */
export function readSources() {
  const api = new API({ cwd: ROOT });
  try {
    const snapshot = api.updateSnapshot({ openProject: join(ROOT, "tsconfig.json") });
    const [project] = snapshot.getProjects();
    return project.rootFiles
      .filter((file) => file.startsWith(join(ROOT, "src/")) && !file.endsWith(".d.ts"))
      .sort()
      .map((file) => readSource(project.program.getSourceFile(file), file));
  } finally {
    api.close();
  }
}

function readSource(tree, file) {
  const found = { path: relative(ROOT, file), imports: [], functions: [], casts: [] };
  const lineOf = lineFinder(tree.text);
  const visit = (node) => {
    if (node.kind === SyntaxKind.ImportDeclaration || node.kind === SyntaxKind.ExportDeclaration) addImport(found, node, file);
    if (FUNCTIONS.has(node.kind)) found.functions.push(functionOf(node, tree, lineOf));
    if (node.kind === SyntaxKind.AsExpression && !isConst(node)) found.casts.push(lineOf(startOf(node, tree)));
    node.forEachChild(visit);
  };
  visit(tree);
  return found;
}

function addImport(found, node, file) {
  const specifier = node.moduleSpecifier?.text;
  const path = specifier === undefined ? undefined : resolved(specifier, file);
  if (path !== undefined) found.imports.push({ path, typeOnly: isTypeOnly(node) });
}

/** Whether only types cross: `import type`, or every name in the braces says `type`. */
function isTypeOnly(node) {
  const clause = node.importClause;
  if (node.isTypeOnly || clause?.isTypeOnly || clause?.phaseModifier === SyntaxKind.TypeKeyword) return true;
  const names = clause?.namedBindings?.elements ?? [];
  return clause !== undefined && clause.name === undefined && names.length > 0 && [...names].every((name) => name.isTypeOnly);
}

function resolved(specifier, file) {
  const target = specifier.startsWith("#") ? join(ROOT, "src", specifier.slice(1)) : resolve(dirname(file), specifier);
  if (!specifier.startsWith("#") && !specifier.startsWith(".")) return undefined;
  return existsSync(target) ? relative(ROOT, target) : undefined;
}

function functionOf(node, tree, lineOf) {
  const first = lineOf(startOf(node, tree));
  return { name: node.name?.text ?? "(no name)", line: first, lines: lineOf(node.end) - first + 1 };
}

function isConst(node) {
  return node.type.typeName?.text === "const";
}

/** Where a node begins, without the comments and blanks before it. */
function startOf(node, tree) {
  const text = tree.text.slice(node.pos, node.end);
  return node.pos + /^(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/.exec(text)[0].length;
}

/** A function from an offset in the text to its line, from 1. */
function lineFinder(text) {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}
