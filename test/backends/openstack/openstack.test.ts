import assert from "node:assert/strict";
import { test } from "node:test";
import { BackendError } from "#backends/contract/fault.ts";
import { countedQuota, readCatalog, readCreated, readFlavors, readImage, readQuota, readServers } from "#backends/openstack/answer.ts";
import { openStackFault } from "#backends/openstack/faults.ts";
import { openStackOptions, readCredentials } from "#backends/openstack/options.ts";
import { checkRequest, flavorFor, roomFor, serverBody, tokenBody, userData } from "#backends/openstack/request.ts";
import { order, request } from "../order.ts";

const SETTINGS = {
  name: "b",
  type: "openstack",
  complex: "k1",
  user: "anna",
  state_dir: "/s",
  attributes: { credentials: "/etc/os" },
} as const;
const FLAVORS = readFlavors(
  JSON.stringify({
    flavors: [
      { id: "3", name: "m1.large", vcpus: 4, ram: 8192, disk: 80 },
      { id: "1", name: "m1.tiny", vcpus: 1, ram: 512, disk: 1 },
      { id: "2", name: "c1.small", vcpus: 1, ram: 2048, disk: 10, "OS-FLV-EXT-DATA:ephemeral": 30 },
    ],
  }),
);

test("the smallest flavour that satisfies a request is chosen among those that are allowed", () => {
  const rows: readonly (readonly [parts: Parameters<typeof request>[0], flavors: string, name: string | null])[] = [
    [{}, ".*", "m1.tiny"],
    [{ mem_kb: 600 * 1024 }, ".*", "c1.small"],
    [{ mem_kb: 600 * 1024 }, "m1\\..*", "m1.large"],
    [{ ncpus: 2 }, ".*", "m1.large"],
    [{ tmp_kb: 35 * 1024 * 1024 }, ".*", "c1.small"],
    [{ ncpus: 5 }, ".*", null],
    [{ ncpus: 2 }, "c1", null],
    [{ options: { flavor: "m1.large" } }, "c1[.]small", "m1.large"],
    [{ options: { flavor: "3" } }, ".*", "m1.large"],
    [{ ncpus: 8, options: { flavor: "m1.large" } }, ".*", null],
  ];
  for (const [parts, flavors, name] of rows) {
    const options = openStackOptions({ ...SETTINGS, attributes: { ...SETTINGS.attributes, flavors } });
    const choose = () => flavorFor(request(parts), FLAVORS, options).name;
    if (name !== null) assert.equal(choose(), name, JSON.stringify(parts));
    else
      assert.throws(
        choose,
        (error) => error instanceof BackendError && error.kind === "impossible" && /there are: /.test(error.message),
        JSON.stringify(parts),
      );
  }
  assert.throws(() => checkRequest(request({ resources: { ngpus: 1 } })), { kind: "impossible" });
});

test("I3: the quota gives the number of servers; -1 is no quota", () => {
  const limits = (instances: number, cores: number, ram: number): string =>
    JSON.stringify({
      limits: {
        absolute: {
          maxTotalInstances: instances,
          totalInstancesUsed: 2,
          maxTotalCores: cores,
          totalCoresUsed: 4,
          maxTotalRAMSize: ram,
          totalRAMUsed: 4096,
        },
      },
    });
  const large = FLAVORS.find(({ name }) => name === "m1.large");
  assert.ok(large !== undefined);
  const rows: readonly (readonly [instances: number, cores: number, ram: number, room: number])[] = [
    [10, 20, 51_200, 4],
    [10, 100, 51_200, 5],
    [3, 100, 51_200, 1],
    [2, 100, 51_200, 0],
    [1, 1, 1, 0],
    [-1, -1, -1, Number.POSITIVE_INFINITY],
  ];
  for (const [instances, cores, ram, room] of rows) assert.equal(roomFor(large, readQuota(limits(instances, cores, ram))), room);
  assert.throws(() => readQuota("{}"), BackendError);
  const own = JSON.stringify({
    servers: [server("a", "BUILD", { flavor: { vcpus: 10, ram: 8192 } }), server("b", "ERROR", { flavor: { vcpus: 9, ram: 1 } })],
  });
  const counted = countedQuota(readQuota(limits(3, 20, 51_200)), readServers(own, { complex: "k1", backend: "b" }).servers);
  assert.deepEqual([counted.instances.used, counted.cores.used, counted.ram_mb.used], [2, 10, 8192]);
});

test("credentials are read from files as openrc files have them", () => {
  const text =
    "export OS_AUTH_URL=http://h:5000/v3/ OS_USERNAME=admin OS_PASSWORD='p w$' OS_PROJECT_NAME=\"x y\" OS_USER_DOMAIN_ID=default\nexport OS_REGION_NAME=R1\n";
  const credentials = readCredentials(text, null);
  assert.equal(credentials.url, "http://h:5000/v3");
  assert.equal(credentials.region, "R1");
  assert.deepEqual(credentials.secrets, ["p w$"]);
  assert.deepEqual(tokenBody(credentials), {
    auth: {
      identity: { methods: ["password"], password: { user: { name: "admin", domain: { id: "default" }, password: "p w$" } } },
      scope: { project: { name: "x y", domain: { id: "default" } } },
    },
  });
  const application = readCredentials("OS_APPLICATION_CREDENTIAL_ID=i\nOS_APPLICATION_CREDENTIAL_SECRET=s\n", "http://other/v3");
  assert.deepEqual(tokenBody(application), {
    auth: { identity: { methods: ["application_credential"], application_credential: { id: "i", secret: "s" } } },
  });
  assert.throws(() => readCredentials("OS_AUTH_URL=http://h\nOS_USERNAME=a\nOS_PROJECT_NAME=p", null), /needs OS_PASSWORD/);
  assert.throws(() => openStackOptions({ ...SETTINGS, attributes: {} }), /needs credentials/);
});

test("the body of a new server", () => {
  const flavor = FLAVORS[1];
  assert.ok(flavor !== undefined);
  const body = (attributes: object) =>
    JSON.parse(
      JSON.stringify(
        serverBody(
          { order: order(), index: 0, flavor, image: "img", user: "anna" },
          openStackOptions({ ...SETTINGS, attributes: { ...SETTINGS.attributes, ...attributes } }),
        ),
      ),
    );
  const { server } = body({ repo_key: "r:", networks: ["none"], key_name: "k", security_groups: ["a"] });
  const { user_data, ...rest } = server;
  assert.deepEqual(rest, {
    name: "r:k1.b.1-0",
    imageRef: "img",
    flavorRef: "1",
    networks: "none",
    metadata: { partita_tag: "k1.b.1", partita_index: "0" },
    key_name: "k",
    security_groups: [{ name: "a" }],
  });
  assert.match(Buffer.from(user_data, "base64").toString(), /^#!\/bin\/sh\n/);
  assert.equal(body({}).server.networks, "auto");
  assert.deepEqual(body({ networks: ["n1", "n2"] }).server.networks, [{ uuid: "n1" }, { uuid: "n2" }]);
});

test("O1: user data have the token of one runner, for a user who is not root", () => {
  const asked = order({ count: 2, tokens: ["AAA", "BBB"], owner: { name: "bob", uid: 1234, gid: 1, groups: [] } });
  const text = userData(asked, 1, null);
  assert.match(text, /useradd -m -u 1234 bob/);
  assert.match(text, /printf %s 'BBB' > /);
  assert.doesNotMatch(text, /AAA/);
  for (const name of ["root", "a;id", "", "-x"]) assert.throws(() => userData(order({ owner: null }), 0, name), BackendError, name);
  assert.throws(() => userData(order({ tokens: ["a'b"] }), 0, "anna"), RangeError);
});

const CATALOG = JSON.stringify({
  token: {
    expires_at: "2026-11-26T00:00:00.000000Z",
    catalog: [
      {
        type: "compute",
        endpoints: [
          { interface: "admin", region: "R1", url: "http://a" },
          { interface: "public", region: "R1", url: "http://c1/v2.1/" },
          { interface: "public", region: "R2", url: "http://c2" },
        ],
      },
      { type: "image", endpoints: [{ interface: "public", region: "R1", url: "http://i1" }] },
    ],
  },
});

test("the catalogue gives the public addresses of a region", () => {
  assert.deepEqual(readCatalog(CATALOG, "R1"), {
    expires_at: "2026-11-26T00:00:00.000000Z",
    compute: "http://c1/v2.1",
    image: "http://i1",
  });
  assert.equal(readCatalog(CATALOG, "R2").compute, "http://c2");
  assert.equal(readCatalog(CATALOG, null).compute, "http://c1/v2.1");
  assert.throws(() => readCatalog(CATALOG, "R3"), { kind: "configuration" });
  assert.throws(() => readCatalog("<html>", null), { kind: "transient" });
});

const server = (id: string, status: string, more: object = {}): object => ({
  id,
  status,
  metadata: { partita_tag: "k1.b.1", partita_index: "2" },
  ...more,
});

test("servers as nova lists them; strangers' servers are none of ours", () => {
  const rows: readonly (readonly [server: object, seen: readonly unknown[] | null])[] = [
    [server("a", "BUILD", { "OS-EXT-STS:task_state": "spawning" }), ["queued", null, "BUILD: spawning", false]],
    [server("a", "ACTIVE", { "OS-EXT-STS:task_state": null }), ["running", null, "ACTIVE", false]],
    [
      server("a", "ERROR", { fault: { code: 500, message: "No valid host was found. " } }),
      ["ended", "retry", "ERROR: No valid host was found.", true],
    ],
    [server("a", "SHUTOFF"), ["ended", "done", "SHUTOFF", true]],
    [server("a", "SHUTOFF", { "OS-EXT-STS:task_state": "deleting" }), ["ended", "done", "SHUTOFF: deleting", false]],
    [server("a", "UNKNOWN"), ["unknown", null, "UNKNOWN", false]],
    [{ id: "a", status: "ACTIVE", metadata: {} }, null],
    [{ id: "a", status: "ACTIVE" }, null],
    [server("../x", "ACTIVE"), null],
    [server("a", "ACTIVE", { metadata: { partita_tag: "k2.b.1", partita_index: "2" } }), null],
    [server("a", "ACTIVE", { metadata: { partita_tag: "k1.b.1", partita_index: "-1" } }), null],
  ];
  for (const [one, seen] of rows) {
    const { servers } = readServers(JSON.stringify({ servers: [one] }), { complex: "k1", backend: "b" });
    const shown = servers.map(({ sighting, over }) => [sighting.state, sighting.ending, sighting.reason, over]);
    assert.deepEqual(shown, seen === null ? [] : [seen], JSON.stringify(one));
  }
  const page = JSON.stringify({
    servers: [server("a", "ACTIVE"), { id: "z", status: "ACTIVE" }],
    servers_links: [{ rel: "next", href: "x" }],
  });
  assert.equal(readServers(page, { complex: "k1", backend: "b" }).next, "z");
  assert.throws(() => readServers('{"servers":[{"id":7}]}', { complex: "k1", backend: "b" }), BackendError);
});

test("images by id, by name, or the first active one", () => {
  const text = JSON.stringify({
    images: [
      { id: "1", name: "old", status: "queued" },
      { id: "2", name: "deb", status: "active" },
      { id: "3", name: null, status: "active" },
    ],
  });
  assert.equal(readImage(text, null), "2");
  assert.equal(readImage(text, "deb"), "2");
  assert.equal(readImage(text, "3"), "3");
  assert.throws(() => readImage(text, "old"), { kind: "configuration" });
  assert.equal(readCreated('{"server":{"id":"77","links":[]}}'), "77");
});

test("OpenStack's errors by kind, without secrets", () => {
  const rows: readonly (readonly [status: number, text: string, kind: string, says: RegExp])[] = [
    [400, '{"badRequest":{"code":400,"message":"Flavor nope could not be found."}}', "impossible", /Flavor nope could not be found/],
    [400, '{"badRequest":{"code":400,"message":"Invalid imageRef provided."}}', "configuration", /imageRef/],
    [
      401,
      '{"error":{"code":401,"message":"The request you have made requires authentication."}}',
      "configuration",
      /requires authentication/,
    ],
    [
      403,
      '{"forbidden":{"code":403,"message":"Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"}}',
      "limit",
      /Quota exceeded/,
    ],
    [403, '{"forbidden":{"code":403,"message":"Policy doesn\'t allow it"}}', "configuration", /Policy/],
    [429, "slow down", "limit", /429 slow down/],
    [500, "<html>Internal Server Error</html>", "transient", /500/],
    [503, "", "transient", /503/],
  ];
  for (const [status, text, kind, says] of rows) {
    const fault = openStackFault("POST servers", status, text, ["geheim"]);
    assert.equal(fault.kind, kind, text);
    assert.match(fault.text, says);
  }
  assert.equal(openStackFault("GET x", 500, '{"e":{"message":"user geheim failed"}}', ["geheim"]).text, "GET x: 500 user *** failed");
});
