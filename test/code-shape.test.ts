/** Files keep their size: none is long, and a small one has several users or is an entry. Comments begin with their subject. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const MOST_LINES = 400;
const FEW_LINES = 36;

/** Files whose imports are rows of a table, or entries: each row has one user, and a face has the users of its room. */
const TABLES =
  /(^|\/)(index|public)\.ts$|^src\/(serve\/http\/server\/routes|apps\/cli\/run|template\/tool-calls\/formats)\.ts$/;

/** Small files with one user that are there already. The list may only shrink. */
const SMALL: readonly string[] = [
  'src/answer/stop-tail.ts',
  'src/apps/cli/synthetic.ts',
  'src/protocol/schemas/context-shift.ts',
  'src/protocol/schemas/repetition-detection.ts',
  'src/rl/rollout/run-tests.ts',
  'src/serve/http/server/cors.ts',
  'src/serve/tools/deadline.ts',
];

/** Openings that hide the subject of a comment. */
const OPENINGS = /^\s*(\/\/|\/\*\*|\*|#) ?(What|Who|Whose|Where|Of|Those|Nobody|None|Whether)\b/;

const listed = (...folders: string[]) =>
  execFileSync('git', ['ls-files', '--', ...folders], { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 })
    .split('\n')
    .filter((file) => file !== '' && fs.existsSync(path.join(ROOT, file)));
const linesOf = (file: string) => fs.readFileSync(path.join(ROOT, file), 'utf8').split('\n');

const sources = listed('src').filter((file) => file.endsWith('.ts') && !file.includes('/generated/'));

it('no source file is longer than a screen or two', () => {
  expect(sources.length).toBeGreaterThan(500);
  const native = listed('native').filter((file) => /\.(cc|h)$/.test(file));
  expect([...sources, ...native].filter((file) => linesOf(file).length > MOST_LINES + 1)).toEqual([]);
});

it('no small file has a single user, beside rows of tables', () => {
  const users = new Map<string, Set<string>>();
  for (const file of sources)
    for (const [, to] of linesOf(file)
      .join('\n')
      .matchAll(/'(\.{1,2}\/[^']+\.ts)'/g)) {
      const target = path.posix.join(path.posix.dirname(file), to!);
      users.set(target, (users.get(target) ?? new Set()).add(file));
    }
  const found = sources.filter((file) => {
    const [user, ...others] = users.get(file) ?? [];
    return (
      linesOf(file).length <= FEW_LINES && user !== undefined && others.length === 0 && !TABLES.test(user)
    );
  });
  expect(found.filter((file) => !TABLES.test(file))).toEqual(SMALL);
});

it('comments begin with their subject', () => {
  const found = listed('src', 'native', 'test', 'scripts', 'bench', 'examples')
    .filter((file) => /\.(ts|mjs|cjs|js|cc|h|py|sh)$/.test(file))
    .flatMap((file) =>
      linesOf(file).flatMap((line, i) => (OPENINGS.test(line) ? [`${file}:${i + 1}: ${line.trim()}`] : [])),
    );
  expect(found).toEqual([]);
});
