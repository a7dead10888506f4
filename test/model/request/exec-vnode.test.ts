import assert from "node:assert/strict";
import { test } from "node:test";
import { execHosts, execHostText, parseExecHost } from "#model/request/exec-host.ts";
import { assignedAmounts, execVnodeText, parseExecVnode, partOf, vnodesOf } from "#model/request/exec-vnode.ts";
import { builtinResources } from "#model/resource-table.ts";
import { refusal } from "../refusal.ts";

const resources = builtinResources();

test("exec_vnode is read and written the same", () => {
  for (const text of [
    "(vn1:ncpus=2:mem=1gb+vn2:ncpus=1)+(vn1:ncpus=1)",
    "(va[0]:ncpus=4+va[1]:ncpus=2)",
    "(n1)",
    '(n1:color="a b")',
    "(n-1.x:ncpus=0)",
  ]) {
    assert.equal(execVnodeText(parseExecVnode(text)), text);
  }
  assert.equal(execVnodeText(parseExecVnode("n1:ncpus=2+n2")), "(n1:ncpus=2)+(n2)");
  assert.equal(
    execVnodeText([
      [
        partOf("n1", [
          ["ncpus", "2"],
          ["color", "a b"],
        ]),
      ],
    ]),
    '(n1:ncpus=2:color="a b")',
  );
  for (const text of [
    "",
    "()",
    "(n1",
    "n1)",
    "(n1+)",
    "(n1:)",
    "(n1:ncpus)",
    "(n1:ncpus=1:ncpus=2)",
    "(n1:ncpus=1:)",
    "(n1:ncpus=1,2)",
    "(n1::ncpus=1)",
    "(n1)(n2)",
    "(n 1)",
    "(n1)+",
    "((n1))",
  ]) {
    assert.equal(
      refusal(() => parseExecVnode(text)),
      "15014 Illegal attribute or resource value",
      text,
    );
  }
});

test("amounts by vnode: numbers, sizes in kb, nothing else", () => {
  const assigned = assignedAmounts(parseExecVnode("(n1:ncpus=2:mem=1gb:color=red)+(n1:ncpus=1+n2:ncpus=1:mem=1kb:arch=linux)"), resources);
  assert.deepEqual(
    [...assigned].map(([vnode, amounts]) => [vnode, Object.fromEntries(amounts)]),
    [
      ["n1", { ncpus: 3, mem: 1048576 }],
      ["n2", { ncpus: 1, mem: 1 }],
    ],
  );
  assert.deepEqual(vnodesOf(parseExecVnode("(n2)+(n1+n2)")), ["n2", "n1"]);
});

test("exec_host: an entry a chunk and host, the lowest free slots, one processor not written", () => {
  const hostOf = (vnode: string): string => vnode.split("[")[0] ?? "";
  const free = (): ReadonlySet<number> => new Set();
  const hosts = (text: string, taken = free): string => execHostText(execHosts(parseExecVnode(text), hostOf, taken));
  assert.equal(hosts("(va[0]:ncpus=2)+(va[0]:ncpus=2)+(va[1]:ncpus=2)"), "va/0*2+va/1*2+va/2*2");
  assert.equal(hosts("(va[0]:ncpus=4+va[1]:ncpus=2)"), "va/0*6");
  assert.equal(hosts("(a:ncpus=2)+(b:ncpus=1)+(c)"), "a/0*2+b/0+c/0*0");
  assert.equal(
    hosts("(a:ncpus=1)+(a:ncpus=1)", () => new Set([0, 2])),
    "a/1+a/3",
  );
  assert.deepEqual(parseExecHost("a/0*2+b/1"), [
    { host: "a", slot: 0, ncpus: 2 },
    { host: "b", slot: 1, ncpus: 1 },
  ]);
  for (const text of ["", "a", "a/", "a/x", "a/0*", "a/0+", "/0"])
    assert.equal(
      refusal(() => parseExecHost(text)),
      "15014 Illegal attribute or resource value",
      text,
    );
});
