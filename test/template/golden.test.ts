/** Real chat templates -> the text that Python renders. */
import { describe, expect, it } from 'vitest';
import { renderChatTemplate } from '../../src/template/index.ts';
import { dataFile, ENGINES, GOLDEN_NOW, type GoldenRow, readGolden } from './helpers.ts';

/** Rows that are known to differ, with the reason. */
const KNOWN = new Map([
  ['micro/strings/18.0', 'named characters: \\N{...} needs the table of Unicode names'],
  ['micro/scoping/2.0', 'set ns.a, x = ... is legal since Jinja2 3.1.5; the golden is older'],
]);

function failures(rows: readonly GoldenRow[], engine: (typeof ENGINES)[number]): string[] {
  const failed: string[] = [];
  for (const row of rows) {
    let output: string | undefined;
    try {
      output = renderChatTemplate({ template: row.template, ...row.args, engine, now: () => GOLDEN_NOW });
    } catch {
      output = undefined; // the goldens compare texts, and that errors are errors
    }
    if (output !== row.output) failed.push(row.id);
  }
  return failed;
}

describe('golden data', () => {
  for (const file of ['golden-dev.jsonl', 'golden-micro.jsonl']) {
    const path = dataFile(file);
    it.skipIf(path === null).each(ENGINES)(
      `${file} is exact, %s`,
      (engine) => {
        const rows = readGolden(path!);
        expect(rows.length).toBeGreaterThan(800);
        const known = rows.map((row) => row.id).filter((id) => KNOWN.has(id));
        expect(failures(rows, engine)).toEqual(known);
      },
      60_000,
    );
  }
});
