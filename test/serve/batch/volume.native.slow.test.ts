/** Many rows -> memory that does not grow with them. The full count is in `npm run bench -- batch`. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { batchOf, echo, newFolder, readRows } from './fake-rows.ts';

const ROWS = 60_000;
const MIB = 2 ** 20;

it('sixty thousand rows take the memory of a few', async () => {
  const output = path.join(newFolder(), 'out.jsonl');
  const filler = 'x'.repeat(1000); // 60 MB of rows
  const used: number[] = [];
  function* rows() {
    for (let i = 0; i < ROWS; i++) {
      if (i === ROWS / 3 || i === ROWS - 1) used.push(memory());
      yield { custom_id: `id-${i}`, body: { messages: [{ role: 'user', content: `${i} ${filler}` }] } };
    }
  }
  const summary = await batchOf(
    async (url, body, call) => ({ ...(await echo(url, body, call)), text: '' }),
    rows(),
    {
      output,
    },
  ).done;
  expect(summary).toMatchObject({ rows: ROWS, completed: ROWS });
  expect(new Set(readRows(output).map((row) => row.custom_id)).size).toBe(ROWS);
  expect(used[1]! - used[0]!).toBeLessThan(15 * MIB);
});

/** Returns the bytes in use after a collection, in JavaScript's heap and outside of it. */
function memory(): number {
  globalThis.gc!();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
