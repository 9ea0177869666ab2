/** The programs of docs/serving.md that mount the handler in other servers run as they stand there, but for the port. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { connect } from '../../src/serve/http/index.ts';
import { freePort, packageFolder, ROOT } from './program.ts';

const MOUNT = /<!-- mount: (\w+) -->\n```ts\n([\s\S]*?)```/g;
const programs = new Map(
  [...fs.readFileSync(path.join(ROOT, 'docs', 'serving.md'), 'utf8').matchAll(MOUNT)].map(
    ([, name, source]) => [name!, source!],
  ),
);

/** Stands in for `electron`: stores the handler and answers requests through it as the app would. */
const ELECTRON = `
export const app = { whenReady: async () => {} };
export const protocol = {
  registerSchemesAsPrivileged() {},
  handle(scheme, handler) { globalThis.protocolHandlers = { [scheme]: handler }; },
};`;

let folder: string;
beforeAll(() => {
  folder = packageFolder('onpolicy-mounts-', ['express', 'hono', '@remix-run/node-fetch-server']);
  const modules = path.join(folder, 'node_modules');
  fs.mkdirSync(path.join(modules, 'electron'));
  const manifest = { name: 'electron', type: 'module', exports: './index.js' };
  fs.writeFileSync(path.join(modules, 'electron', 'package.json'), JSON.stringify(manifest));
  fs.writeFileSync(path.join(modules, 'electron', 'index.js'), ELECTRON);
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

/** Writes a program of the document as a module. */
function write(name: string, change: (source: string) => string = (source) => source): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  const { outputText } = ts.transpileModule(change(programs.get(name)!), { compilerOptions });
  const file = path.join(folder, `${name}.mjs`);
  fs.writeFileSync(file, outputText);
  return file;
}

const REQUEST = {
  messages: [{ role: 'user', content: 'What is the capital of Peru?' }],
  temperature: 0,
  stream: true,
} as const;

/** The text of a stream through a function like fetch. */
async function textThrough(fetch: typeof globalThis.fetch, baseUrl: string, apiKey: string): Promise<string> {
  await using client = connect({ baseUrl, apiKey, fetch, maxRetries: 0 });
  let text = '';
  for await (const { choices } of await client.createCompletion(REQUEST))
    text += choices[0]?.delta.content ?? '';
  return text;
}

it('the document shows every server', () => {
  expect([...programs.keys()]).toEqual(['node', 'hono', 'express', 'next', 'electron']);
});

describe.each(['node', 'hono', 'express'])('%s', (name) => {
  let child: ChildProcess;
  let url: string;
  beforeAll(async () => {
    const port = await freePort();
    const file = write(name, (source) => source.replace('8080', `${port}, '127.0.0.1'`));
    child = spawn(process.execPath, [file], { stdio: ['ignore', 'inherit', 'inherit'] });
    url = `http://127.0.0.1:${port}`;
    await vi.waitFor(() => fetch(url), { timeout: 20_000, interval: 50 });
  });
  afterAll(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });

  it('streams', async () => {
    expect(await textThrough(fetch, url, 'secret')).toBe('The capital of Peru is Lima.');
  });

  it('knows the token, and reads errors', async () => {
    await expect(textThrough(fetch, url, 'wrong')).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    const response = await fetch(`${url}/v1/preview/models?limit=0`, {
      headers: { authorization: 'Bearer secret' },
    });
    expect(response.status).toBe(response.headers.get('x-error-code') === 'UNSUPPORTED' ? 400 : 422);
  });
});

it('next', async () => {
  const route = (await import(/* @vite-ignore */ pathToFileURL(write('next')).href)) as Record<
    string,
    unknown
  >;
  expect(route['runtime']).toBe('nodejs');
  const post = route['POST'] as (request: Request) => Promise<Response>;
  const through: typeof fetch = (input, init) => post(new Request(input as string, init));
  expect(await textThrough(through, 'https://site.example', 'secret')).toBe('The capital of Peru is Lima.');
});

it('electron', async () => {
  await import(/* @vite-ignore */ pathToFileURL(write('electron')).href);
  const { model } = (
    globalThis as never as { protocolHandlers: Record<string, (request: Request) => Promise<Response>> }
  ).protocolHandlers;
  const ask = async (origin: string): Promise<Response> =>
    model!(
      new Request('model://local/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin },
        body: JSON.stringify(REQUEST),
      }),
    );
  const response = await ask('app://main');
  expect(response.headers.get('access-control-allow-origin')).toBe('app://main');
  expect(await response.text()).toMatch(/Lima[\s\S]*data: \[DONE\]\n\n$/);
  expect((await ask('https://elsewhere.example')).status).toBe(403);
});
