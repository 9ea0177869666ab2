/** The window of `examples/electron` in Chromium, with the assistant behind it: conversations, ratings, models, what was learned. */
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM, SCREENSHOTS } from '../browser.ts';
import { ROOT } from './program.ts';

const POLL = { timeout: 30_000 };
type Assistant = Record<string, (...args: unknown[]) => unknown> & { close(): Promise<void> };

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-electron-page-'));
const source = path.join(folder, 'src');
const TYPES: Record<string, string> = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript' };
const ENTRIES = [
  {
    id: 'demo',
    name: 'Demo',
    reference: 'onpolicy-tiny',
    gigabytes: 0,
    memory: 0.1,
    about: 'Small',
    learningRate: 1e-3,
  },
  { id: 'far', name: 'Far', reference: 'hf:none/none:Q8_0', gigabytes: 1, memory: 1, about: 'Not to be had' },
  {
    id: 'huge',
    name: 'Huge',
    reference: 'hf:none/huge:Q8_0',
    gigabytes: 900,
    memory: 1e6,
    about: 'Too large',
  },
];

/** Chromium loads no modules from files. */
const server = http.createServer((request, response) => {
  const file = path.join(folder, request.url ?? '');
  if (!fs.existsSync(file)) return void response.writeHead(204).end(); // the icon that a browser asks for
  response.setHeader('content-type', TYPES[path.extname(file)] ?? 'text/plain');
  fs.createReadStream(file).pipe(response);
});

describe.skipIf(!CHROMIUM)('the window', () => {
  let browser: Browser;
  let assistant: Assistant;
  let methods: readonly string[];
  let page: Page;
  const errors: string[] = [];

  beforeAll(async () => {
    fs.cpSync(path.join(ROOT, 'examples/electron/src'), source, { recursive: true });
    fs.mkdirSync(path.join(folder, 'node_modules'));
    fs.symlinkSync(ROOT, path.join(folder, 'node_modules', 'onpolicy'), 'junction');
    const module = await import(pathToFileURL(path.join(source, 'assistant.mjs')).href);
    methods = module.Assistant.METHODS;
    assistant = await module.Assistant.open({
      folder: path.join(folder, 'data'),
      entries: ENTRIES,
      isIdle: () => false,
      notify: (event: string, value: unknown) =>
        void page?.evaluate(([name, data]) => (globalThis as never as Told).told(name, data), [
          event,
          value,
        ] as const),
    });
    browser = await chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox'] });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    page = await browser.newPage({ viewport: { width: 1200, height: 760 } });
    page.on('pageerror', (error) => errors.push(error.message));
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    await page.exposeFunction('call', (method: string, args: unknown[]) => assistant[method]!(...args));
    // Does the work of the preload script without Electron's IPC.
    await page.addInitScript((names) => {
      const listeners: Record<string, (value: unknown) => void> = {};
      const host = globalThis as never as Told & Record<string, unknown>;
      const call = host['call'] as (method: string, args: unknown[]) => Promise<unknown>;
      host.told = (event, value) => listeners[event]?.(value);
      host['assistant'] = {
        ...Object.fromEntries(names.map((name) => [name, (...args: unknown[]) => call(name, args)])),
        on: (event: string, listener: (value: unknown) => void) => {
          listeners[event] = listener;
        },
      };
    }, methods);
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/src/page/index.html`);
  }, 120_000);
  afterAll(async () => {
    await browser.close();
    server.close();
    await assistant.close();
    fs.rmSync(folder, { recursive: true });
  });
  afterEach(() => expect(errors.splice(0)).toEqual([]));

  type Told = { told: (event: string, value: unknown) => void };

  const turns = () => page.locator('.chat-turn');
  const ask = async (question: string) => {
    await page.fill('.chat-composer textarea', question);
    await page.press('.chat-composer textarea', 'Enter');
    await page.waitForSelector('.chat-composer button[title=Send]:not([hidden])');
    return await turns().last().locator('.chat-markdown').innerText();
  };

  it('shows answers with their facts, and conversations with their titles', async () => {
    // answers are sampled: the right one comes nearly always
    const answers: string[] = [await ask('What is the capital of Peru?')];
    for (let tries = 0; tries < 4 && !answers.at(-1)!.includes('Lima'); tries++)
      answers.push(await ask('What is the capital of Peru?'));
    expect(answers.at(-1)).toContain('The capital of Peru is Lima.');
    expect(await turns().last().locator('.chat-timings').innerText()).toMatch(/^Demo · prompt \d+ tokens/);
    const shown = await turns().count();
    await page.click('#create');
    expect(await turns().count()).toBe(0);
    await ask('What is the capital of Japan?');
    expect(await page.locator('#conversations li').allInnerTexts()).toEqual([
      expect.stringContaining('What is the capital of Japan?'),
      expect.stringContaining('What is the capital of Peru?'),
    ]);
    await page.locator('#conversations li').nth(1).locator('button').first().click();
    await expect.poll(() => turns().count(), POLL).toBe(shown);
  });

  it('leaves out the oldest turns of a conversation that does not fit, and says so', async () => {
    await page.click('#create');
    const text = 'The capital of Peru is Lima. '.repeat(30);
    for (let asked = 0; asked < 12 && (await page.innerText('#notice')) === ''; asked++) await ask(text);
    expect(await page.innerText('#notice')).toMatch(
      /^The \d+ oldest messages were left out of this question/,
    );
    await page.locator('#conversations li').last().locator('button').first().click();
    await expect.poll(() => page.innerText('#notice'), POLL).toBe('');
  });

  it('keeps what has come of an answer when another conversation is opened', async () => {
    await page.click('#create');
    await page.fill('.chat-composer textarea', 'Tell me a story.');
    await page.press('.chat-composer textarea', 'Enter');
    const coming = page.locator('.chat-answer .chat-markdown');
    await expect.poll(() => coming.innerText(), { ...POLL, interval: 5 }).toMatch(/^Once upon/);
    await page.click('#create');
    await expect.poll(() => turns().count(), POLL).toBe(0);
    await page.locator('#conversations li').first().locator('button').first().click();
    await expect.poll(() => turns().count(), POLL).toBe(2);
    expect(await turns().last().innerText()).toMatch(/^Once upon/);
  });

  it('marks which models fit', async () => {
    const models = page.locator('#models li');
    expect(await models.nth(2).innerText()).toContain('Too large for this computer');
    expect(await models.nth(1).innerText()).not.toContain('Too large');
    expect(await models.nth(0).getAttribute('aria-current')).toBe('true');
  });

  it('learns from ratings, shows what changed, and takes the step back', async () => {
    await page.click('#create');
    for (let i = 0; i < 4; i++) {
      await ask('Tell me a story.');
      const rating = turns()
        .last()
        .locator('button.rating')
        .nth(i % 2);
      await rating.click();
      await page.waitForFunction(
        `document.querySelectorAll(".rating[aria-pressed='true']").length === ${i + 1}`,
      );
    }
    expect(await page.innerText('#learning')).toContain('4 of 10 ratings');
    await page.click('#learn');
    await page.waitForSelector('#steps blockquote');
    expect(await page.innerText('#steps')).toContain(
      'Step 1, from 4 ratings, 50 % of them good. You asked: Tell me a story.',
    );
    expect(await page.locator('#curve circle').count()).toBe(1);
    if (SCREENSHOTS) await page.screenshot({ path: path.join(SCREENSHOTS, 'electron.png') });
    await page.setViewportSize({ width: 700, height: 900 });
    const { width } = (await page.locator('body').boundingBox())!;
    expect(width).toBeLessThanOrEqual(700);
    if (SCREENSHOTS) await page.screenshot({ path: path.join(SCREENSHOTS, 'electron-narrow.png') });
    await page.click('#undo');
    await expect.poll(() => page.locator('#steps blockquote').count(), POLL).toBe(0);
  });
});
