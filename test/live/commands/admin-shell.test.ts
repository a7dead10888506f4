// The admin shell on a terminal: pasted lines and lines typed ahead are executed one by one, in order.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Complex, startComplex } from "../complex.ts";
import { takeSeat } from "../seat.ts";

let complex: Complex;
before(async () => {
  complex = await startComplex();
});
after(() => complex.stop());

const MODES = [
  ["a", "xterm", "in the shell"],
  ["b", "dumb", "in line mode"],
] as const;

for (const [queue, terminal, mode] of MODES)
  test(`lines that come in one piece with their line ends are requests, one after the other; what follows them is the next line (${mode})`, async () => {
    const seat = takeSeat([complex.command("qmgr")], { env: { ...complex.env(), TERM: terminal }, columns: 120 });
    try {
      await seat.see(/Qmgr: /);
      seat.type(`create queue ${queue} queue_type=e\rset queue ${queue} Priority=7\nlist queue ${queue} Priority\rlist que`);
      await seat.see(/Priority = 7/);
      seat.type(`ue ${queue} queue_type\r`);
      await seat.see(/queue_type = Execution/);
      seat.type("quit\r");
      assert.equal(await seat.ended, 0);
    } finally {
      seat.leave();
    }
    assert.match(complex.qmgr(`list queue ${queue} Priority`), /Priority = 7/);
  });
