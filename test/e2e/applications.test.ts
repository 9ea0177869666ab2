/**
 * The programs of docs/getting-started.md and docs/clients.md at the size of an application: 200 files, clients at once that see the
 * answer grow, a tool of an MCP server. Only their data, ports and servers are replaced. The desktop app is in electron.test.ts.
 */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { freePort, packageFolder, ROOT, runNode } from './program.ts';

const FILES = 200;

const folder = packageFolder('onpolicy-applications-', ['zod', '@modelcontextprotocol']);
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

/** The first block behind a text of a page. */
function blockOf(page: string, before: string): string {
  const text = fs.readFileSync(path.join(ROOT, 'docs', page), 'utf8');
  return /^```(?:js|ts)\n([\s\S]*?)^```/m.exec(text.slice(text.indexOf(before)))![1]!;
}

/** The program with a part replaced, which it must have. */
function replaced(program: string, part: RegExp | string, by: string): string {
  expect(program).toMatch(part);
  return program.replace(part, () => by);
}

function write(name: string, source: string): string {
  const file = path.join(folder, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, source);
  return file;
}

it('extraction reads 200 files', { timeout: 300_000 }, async () => {
  const people = Array.from({ length: FILES }, (_, i) => ({
    name: ['Omar', 'Nina'][i % 2]!,
    age: 20 + (i % 10),
    city: ['Delhi', 'Paris'][i % 2]!,
  }));
  people.forEach(({ name, age, city }, i) => {
    write(`people/${i}.txt`, `${name} is ${age} years old and lives in ${city}.`);
  });
  const program = replaced(
    replaced(
      blockOf('getting-started.md', '**Extraction**'),
      /^const texts = \[[\s\S]*?^\];/m,
      `import fs from 'node:fs';
      const texts = fs.readdirSync('people').map((name) => ({ text: fs.readFileSync('people/' + name, 'utf8') }));`,
    ),
    'console.log(parsed?.name, parsed?.city)',
    'console.log(JSON.stringify(parsed))',
  );
  const outcome = await runNode([write('extraction.mjs', program)], { cwd: folder, timeoutMs: 280_000 });
  expect(outcome).toMatchObject({ code: 0, stderr: '' });
  const lines = outcome.stdout.trimEnd().split('\n');
  const sorted = (all: readonly string[]) => all.toSorted((a, b) => a.localeCompare(b));
  expect(sorted(lines)).toEqual(sorted(people.map((one) => JSON.stringify(one))));
});

it('the chat server streams to clients at once, and goes on when one leaves', {
  timeout: 60_000,
}, async () => {
  const port = await freePort();
  const program = replaced(blockOf('getting-started.md', '**A chat server**'), '8080', String(port));
  const server = spawn(process.execPath, [write('server.mjs', program)], { cwd: folder, stdio: 'pipe' });
  let stderr = '';
  server.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ask = (body: string) => fetch(`http://127.0.0.1:${port}`, { method: 'POST', body });
  const piecesOf = async (response: Response): Promise<string[]> => {
    const pieces: string[] = [];
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) pieces.push(piece);
    return pieces;
  };
  try {
    let first = await ask('Tell me a story.').catch(() => null);
    while (first === null) {
      await sleep(100);
      first = await ask('Tell me a story.').catch(() => null);
    }
    const left = await ask('Tell me a story.');
    await left.body!.cancel();
    const [story, ...capitals] = await Promise.all([
      piecesOf(first),
      ask('What is the capital of Peru?').then(piecesOf),
      ask('What is the capital of Japan?').then(piecesOf),
    ]);
    expect(story.length).toBeGreaterThan(1);
    expect(capitals.map((pieces) => pieces.join(''))).toEqual([
      'The capital of Peru is Lima.',
      'The capital of Japan is Tokyo.',
    ]);
    expect(stderr).toBe('');
  } finally {
    server.kill('SIGKILL');
  }
});

it('the agent calls a tool of an MCP server', { timeout: 60_000 }, async () => {
  write(
    'weather.mjs',
    `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
    import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
    import { z } from 'zod';
    const server = new McpServer({ name: 'weather', version: '1.0.0' });
    const tool = { description: 'The weather of a city', inputSchema: { city: z.string() } };
    server.registerTool('get_weather', tool, async ({ city }) => ({
      content: [{ type: 'text', text: city === 'Paris' ? 'rainy' : 'sunny' }],
    }));
    await server.connect(new StdioServerTransport());`,
  );
  const loop = replaced(
    blockOf('clients.md', '### Tools of MCP servers'),
    /\{ command: .* \}/,
    '{ command: process.execPath, args: ["weather.mjs"] }',
  ).replace('await using files', 'const files');
  const program = `import { createRuntime } from 'onpolicy';
    const runtime = await createRuntime();
    const messages = [{ role: 'user', content: 'What is the weather in Paris?' }];
    ${loop}
    console.log(content);
    await files[Symbol.asyncDispose]();
    await runtime.close();`;
  const outcome = await runNode([write('agent.mjs', program)], { cwd: folder });
  expect(outcome).toMatchObject({ code: 0, stdout: 'It is rainy in Paris.\n' });
});
