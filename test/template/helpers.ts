/** Shared by the template tests: both engines, the golden data beside the checkout, and a short way to render. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { compileChatTemplate, type RenderInput, type RenderOptions } from '../../src/template/index.ts';

export const ENGINES = ['compiled', 'interpreted'] as const;

/** The time of the goldens, in the local time zone. */
export const GOLDEN_NOW = new Date(2026, 0, 5, 9, 7, 3);

/** Path of a file of the template data, or null (with a printed reason) where the data is absent. */
export function dataFile(name: string): string | null {
  const path = fileURLToPath(new URL(`../../../shared/data/templates/${name}`, import.meta.url));
  if (existsSync(path)) return path;
  process.stderr.write(`skipped: ../shared/data/templates/${name} is absent\n`);
  return null;
}

/** One row of a golden file. */
export type GoldenRow = {
  readonly id: string;
  readonly template_id: string;
  readonly template: string;
  readonly args: RenderInput;
  readonly output?: string;
  readonly error?: string;
};

/** All rows of a golden file. */
export function readGolden<Row = GoldenRow>(path: string): Row[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Row);
}

/** Renders a template with both engines, checks that they agree, and gives the text. Failures are thrown. */
export function render(
  template: string,
  kwargs: Readonly<Record<string, unknown>> = {},
  options: RenderOptions & Partial<RenderInput> = {},
): string {
  const run = (engine: (typeof ENGINES)[number]): { text: string } | { error: unknown } => {
    try {
      const input = { messages: [], kwargs, ...options };
      return { text: compileChatTemplate(template).render(input, { ...options, engine }) };
    } catch (error) {
      return { error };
    }
  };
  const [compiled, interpreted] = [run('compiled'), run('interpreted')];
  const describe = (result: { text: string } | { error: unknown }): string =>
    'text' in result ? result.text : `ERROR ${String(result.error)}`;
  if (describe(compiled) !== describe(interpreted))
    throw new Error(`the engines disagree: ${describe(compiled)} / ${describe(interpreted)}`);
  if ('error' in compiled) throw compiled.error;
  return compiled.text;
}
