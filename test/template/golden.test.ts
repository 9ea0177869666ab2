/** Real chat templates -> the text that Python renders. */
import { describe, expect, it } from 'vitest';
import { renderChatTemplate } from '../../src/template/index.ts';
import { dataFile, GOLDEN_NOW, type GoldenRow, readGolden } from './helpers.ts';

/** Rows that are known to differ, with the reason. */
const KNOWN = new Map([
  ['micro/strings/18.0', 'named characters: \\N{...} needs the table of Unicode names'],
  ['micro/scoping/2.0', 'set ns.a, x = ... is legal since Jinja2 3.1.5; the golden is older'],
  ['micro/filters/5.5', 'wordwrap: refused, no chat template uses it'],
  ['micro/filters/6.5', 'urlize: refused, no chat template uses it'],
  ['micro/filters/7.3', 'pprint: refused, no chat template uses it'],
  ['micro/scoping/28.0', 'autoescape: refused, prompts are not HTML'],
]);

function failures(rows: readonly GoldenRow[]): string[] {
  const failed: string[] = [];
  for (const row of rows) {
    let output: string | undefined;
    try {
      output = renderChatTemplate({ template: row.template, ...row.args, now: () => GOLDEN_NOW });
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
    it.skipIf(path === null)(
      `${file} is exact`,
      () => {
        const rows = readGolden(path!);
        expect(rows.length).toBeGreaterThan(800);
        const known = rows.map((row) => row.id).filter((id) => KNOWN.has(id));
        expect(failures(rows)).toEqual(known);
      },
      60_000,
    );
  }
});
