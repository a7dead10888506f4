import assert from "node:assert/strict";
import { test } from "node:test";
import { attributeOf } from "#model/attribute.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";
import { aclAdmitsGroups, aclAdmitsHost, aclAdmitsUser, hostMatches, parseAcl } from "#model/values/acl.ts";
import { refusal } from "../refusal.ts";

const acl = (name: string, text: string): string[] => parseAcl(attributeOf(SERVER_ATTRIBUTES, name), text);

test("host parts: exact in any case, wildcards at the front, a full name for a host known by its short one", () => {
  const table: [string, string, boolean][] = [
    ["*", "anything", true],
    ["n1", "n1", true],
    ["N1", "n1", true],
    ["n1", "n2", false],
    ["*.example.org", "n1.example.org", true],
    ["*.example.org", "example.org", false],
    ["*.example.org", "n1.example.com", false],
    ["n1.example.org", "n1", true],
    ["n1.example.org", "n11", false],
    ["n1", "n1.evil.org", false],
    ["n1.example.org", "n1.evil.org", false],
  ];
  for (const [pattern, host, matches] of table) assert.equal(hostMatches(pattern, host), matches, `${pattern} ${host}`);
});

test("the first matching entry decides, no match refuses", () => {
  const user = (list: string, name: string, host: string): boolean => aclAdmitsUser(acl("acl_users", list), { name, host });
  const table: [string, string, string, boolean][] = [
    ["alice", "alice", "h", true],
    ["alice@*", "alice", "h", true],
    ["alice@h2", "alice", "h", false],
    ["bob", "alice", "h", false],
    ["-alice,+alice", "alice", "h", false],
    ["+alice,-alice", "alice", "h", true],
    ["-alice@h,*", "alice", "h", false],
    ["-alice@h,*", "alice", "h2", true],
    ["-bob,*@*.org", "alice", "x.org", true],
    ["*", "anyone", "x", true],
  ];
  for (const [list, name, host, admitted] of table) assert.equal(user(list, name, host), admitted, `${list} ${name}@${host}`);
  assert.equal(aclAdmitsUser(undefined, { name: "root", host: "h" }), false);
  assert.equal(aclAdmitsGroups(acl("acl_resv_groups", "staff,-guests"), ["users", "staff"], "h"), true);
  assert.equal(aclAdmitsGroups(acl("acl_resv_groups", "-guests,*"), ["guests"], "h"), false);
  assert.equal(aclAdmitsHost(acl("acl_hosts", "-bad.org,*.org"), "bad.org"), false);
  assert.equal(aclAdmitsHost(acl("acl_hosts", "-bad.org,*.org"), "good.org"), true);
});

test("entries are checked: form, host of managers, no entry twice", () => {
  const table: [string, string, string][] = [
    ["managers", "alice@*,bob@*.example.org", 'accepted: ["alice@*","bob@*.example.org"]'],
    ["managers", "dave", "15008 Access from host not allowed, or unknown host"],
    ["managers", "dave@", "15008 Access from host not allowed, or unknown host"],
    ["managers", "-dave@*", "15014 Illegal attribute or resource value"],
    ["managers", "a@*,a@*", "15055 Duplicate entry in list  managers"],
    ["acl_users", "alice bob", "15014 Illegal attribute or resource value"],
    ["acl_users", "+", "15014 Illegal attribute or resource value"],
    ["acl_users", "a@b@c", "15014 Illegal attribute or resource value"],
    ["acl_hosts", "+h1, -h2", 'accepted: ["+h1","-h2"]'],
    ["acl_hosts", "a@b", "15014 Illegal attribute or resource value"],
    ["acl_hosts", "a*b", "15014 Illegal attribute or resource value"],
  ];
  for (const [name, text, outcome] of table)
    assert.equal(
      refusal(() => acl(name, text)),
      outcome,
      `${name} = ${text}`,
    );
});
