import { test } from "node:test";
import { addHost, harness } from "../harness.ts";
import { session } from "./qmgr.ts";

test("current_aoe must be one of the vnode's environments; provisioning is refused in words", async () => {
  const h = harness();
  addHost(h, "n1");
  await session(h, [
    ["set node n1 current_aoe = rhel", "15149 Current AOE does not match with resources_available.aoe"],
    ["set node n1 resources_available.aoe = 'rhel,suse'"],
    ["set node n1 current_aoe = sles", "15149 Current AOE does not match with resources_available.aoe"],
    ["set node n1 current_aoe = suse"],
    ["unset node n1 current_aoe"],
    ["set node n1 provision_enable = False"],
    [
      "set node n1 provision_enable = True",
      "15029 Feature/function not supported: vnodes are not provisioned, provision_enable cannot be True",
    ],
  ]);
});
