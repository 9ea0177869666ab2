/** Requests for the chat page and its files: who gets it, with which headers, and from the command. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { packageFile } from '../../../src/common/index.ts';
import { createHandler, serve } from '../../../src/serve/http/index.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';

const HTML = { accept: 'text/html,application/xhtml+xml' };
const handler = createHandler(createMemoryService(), { page: true, tokens: ['secret'] });
const get = (url: string, headers: Record<string, string> = HTML, method = 'GET', from = handler) =>
  from(new Request(`http://localhost${url}`, { method, headers }));

it('is for browsers, without a token, and asks for one', async () => {
  const page = await get('/');
  expect(page.status).toBe(200);
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(await page.text()).toContain('<main id="chat"></main>');
  expect((await get('/v1/models')).status).toBe(401);
});

it('leaves the answer to clients of Ollama as it is', async () => {
  for (const headers of [{ accept: '*/*' }, {} as Record<string, string>]) {
    const found = await get('/', headers);
    expect(await found.text()).toBe('Ollama is running');
    expect(found.headers.get('vary')).toBe('Accept');
  }
});

it('depends on the form that is asked for, also where it depends on the origin', async () => {
  const open = createHandler(createMemoryService(), { page: true, corsOrigins: ['https://a.example'] });
  for (const origin of ['https://a.example', 'https://b.example'])
    expect((await get('/', { ...HTML, origin }, 'GET', open)).headers.get('vary')).toBe('Accept, Origin');
});

it('is off unless it is asked for', async () => {
  const off = createHandler(createMemoryService());
  expect(await (await get('/', HTML, 'GET', off)).text()).toBe('Ollama is running');
  expect((await get('/page/main.js', HTML, 'GET', off)).status).toBe(404);
});

it('has a policy that lets only its own files run, and no HTML be made of texts', async () => {
  for (const url of ['/', '/page/main.js']) {
    const { headers } = await get(url);
    const policy = headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain("require-trusted-types-for 'script'; trusted-types 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  }
});

it('names only files of its own, all of which are there and without scripts inside', async () => {
  const html = await (await get('/')).text();
  expect(html).not.toMatch(
    /<script(?! type="module" src="page\/main\.js"><\/script>)|\son\w+=|\sstyle=|https?:/,
  );
  const named = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file!);
  expect(named.sort()).toEqual([
    'page/chat.css',
    'page/icon.svg',
    'page/main.css',
    'page/main.js',
    'page/markdown.css',
  ]);
  const types = await Promise.all(
    named.map(async (file) => (await get(`/${file}`)).headers.get('content-type')),
  );
  expect(types.map((type) => type!.split(';')[0])).toEqual([
    'text/css',
    'image/svg+xml',
    'text/css',
    'text/javascript',
    'text/css',
  ]);
  const licences = await (await get('/page/licences.txt')).text();
  for (const name of ['eventsource-parser', 'highlight.js', 'lowlight', 'marked'])
    expect(licences).toContain(`${name}\n\n`);
});

it('serves nothing beside its folder', async () => {
  for (const name of ['..%2f..%2findex.js', 'index.html%00', 'tsconfig.json', 'chat.ts', '..%5cx'])
    expect((await get(`/page/${name}`)).status, name).toBe(404);
});

it('is kept by browsers, which ask whether it is still the same', async () => {
  const first = await get('/page/chat.css');
  expect(first.headers.get('cache-control')).toBe('no-cache');
  const tag = first.headers.get('etag')!;
  for (const known of [tag, `W/${tag}`, `"other", ${tag}`]) {
    const second = await get('/page/chat.css', { ...HTML, 'if-none-match': known });
    expect(second.status).toBe(304);
    expect(await second.text()).toBe('');
    expect(second.headers.get('etag')).toBe(tag);
  }
  expect((await get('/page/chat.css', { 'if-none-match': '"other"' })).status).toBe(200);
});

it('answers HEAD as GET, over a socket too, and finds its files below a base path', async () => {
  expect(await (await get('/', HTML, 'HEAD')).text()).toBe('');
  const server = await serve(createMemoryService(), { page: true, basePath: '/app' });
  try {
    const whole = await fetch(`${server.url}/app/`, { headers: HTML });
    const head = await fetch(`${server.url}/app/`, { headers: HTML, method: 'HEAD' });
    expect(Number(head.headers.get('content-length'))).toBe(Buffer.byteLength(await whole.text()));
    const etag = head.headers.get('etag')!;
    const same = await fetch(`${server.url}/app/`, { headers: { ...HTML, 'if-none-match': etag } });
    expect([same.status, same.headers.get('content-length')]).toEqual([304, null]);
    expect((await fetch(`${server.url}/app/page/main.js`)).status).toBe(200);
    expect((await fetch(`${server.url}/`, { headers: HTML })).status).toBe(404);
  } finally {
    await server.close();
  }
});

it('is in the package as scripts that import only each other', async () => {
  const names = fs.readdirSync(packageFile('dist/serve/page')).filter((name) => name.endsWith('.js'));
  expect(names).toEqual(expect.arrayContaining(['main.js', 'chat.js']));
  for (const name of names) {
    const code = await (await get(`/page/${name}`)).text();
    const imported = [...code.matchAll(/\b(?:import|export)\{[^}]*\}from"([^"]+)"/g)].map(([, one]) => one!);
    for (const one of imported) expect(names, name).toContain(one.replace('./', ''));
  }
});

it('makes no elements of texts in its own code', () => {
  const folder = packageFile('src/serve/page');
  const sources = fs.readdirSync(folder).filter((name) => name.endsWith('.ts'));
  const found = sources.filter((name) =>
    /innerHTML|outerHTML|insertAdjacentHTML|DOMParser|srcdoc|document\.write|\beval\(/.test(
      fs.readFileSync(path.join(folder, name), 'utf8'),
    ),
  );
  expect(sources).toContain('markdown.ts');
  expect(found).toEqual([]);
});
