/** Shared by the template tests: the golden data beside the checkout, and a short way to render. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { compileChatTemplate, type RenderInput, type RenderOptions } from '../../src/template/index.ts';

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

/** Renders a template and gives the text. */
export function render(
  template: string,
  kwargs: Readonly<Record<string, unknown>> = {},
  options: RenderOptions & Partial<RenderInput> = {},
): string {
  return compileChatTemplate(template).render({ messages: [], kwargs, ...options }, options);
}
