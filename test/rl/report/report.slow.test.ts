/** A run -> its report page, read as data and in a browser. */
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeReport } from '../../../src/rl/report/index.ts';
import { CHROMIUM, SCREENSHOTS } from '../../browser.ts';
import { codeOf, newHome, open } from '../store/homes.ts';
import { agentGroup, makeRun } from './made-run.ts';

const FULL = { steps: 500, groups: 500, perGroup: 10, tokens: 60 };

async function madeRun(size = { steps: 20, groups: 20, perGroup: 4, tokens: 30 }) {
  const home = await open();
  const { id } = await home.runtime.models.create({ base_model: './tiny.gguf', name: 'adder <b>' });
  await makeRun(home.store, id, size);
  return { ...home, id };
}

describe('a report', () => {
  it('is asked for by id or name, and has its title', async () => {
    const { runtime, id } = await madeRun({ steps: 2, groups: 2, perGroup: 2, tokens: 3 });
    const html = await runtime.report(id);
    expect(html).toContain('<title>adder &#60;b&#62;: training report</title>');
    expect(html).not.toMatch(/<b>not bold/);
    expect(html).not.toMatch(/(src|href)="(http|\/)/); // nothing is loaded
    expect(await runtime.report('adder <b>')).toHaveLength(html.length);
    expect(await codeOf(runtime.report('nobody'))).toBe('MODEL_NOT_FOUND');
  });
});

describe.skipIf(!CHROMIUM)('the report page in Chromium', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox'] });
  });
  afterAll(() => browser.close());
  const errors: string[] = [];
  afterEach(() => expect(errors.splice(0)).toEqual([]));

  async function show(html: string, options: Parameters<Browser['newPage']>[0] = {}): Promise<Page> {
    const file = `${newHome()}.html`;
    fs.writeFileSync(file, html);
    const page = await browser.newPage({ offline: true, ...options });
    page.on('pageerror', (error) => errors.push(error.message));
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    await page.goto(pathToFileURL(file).href);
    await page.waitForSelector('.card:not(.shared)');
    return page;
  }
  const shot = async (page: Page, name: string) => {
    if (SCREENSHOTS) await page.screenshot({ path: path.join(SCREENSHOTS, `${name}.png`), fullPage: true });
  };

  it('shows curves, checkpoints and trajectories', async () => {
    const { runtime, id } = await madeRun();
    const page = await show(await runtime.report(id), {
      viewport: { width: 1280, height: 900 },
      colorScheme: 'light',
    });
    const titles = await page.locator('#charts h3').allTextContents();
    expect(titles).toEqual([
      'Reward',
      'Loss',
      'KL divergence',
      'Entropy',
      'Clip fraction',
      'Learning rate',
      'Gradient norm',
      'Throughput (tokens/s)',
    ]);
    expect(await page.locator('#checkpoints tbody tr').count()).toBe(20);
    expect(await page.locator('h1').textContent()).toBe('adder <b>');
    expect(await page.locator('#count').textContent()).toBe(
      '16 of 16 trajectories in 4 groups, newest first',
    );
    await page.selectOption('#split', 'train');
    await page.waitForFunction(`document.querySelectorAll('.option').length === 16`);
    await page.waitForSelector('.card:not(.shared)');
    expect(await page.locator('.card:not(.shared)').count()).toBe(4);
    expect(await page.locator('.shared .text').allTextContents()).toEqual([
      'You add numbers.',
      expect.stringContaining('</script><b>not bold</b>'),
    ]);
    expect(await page.locator('.card:not(.shared) .text >> nth=0').locator('span').count()).toBe(30);
    await shot(page, 'wide-light');
    await page.close();
  });

  it('has an axis from 0 to 1 for a curve of zeros', async () => {
    const { runtime, id } = await madeRun();
    const page = await show(await runtime.report(id));
    await page.addInitScript(`
      globalThis.written = [];
      CanvasRenderingContext2D.prototype.fillText = function (text) {
        written.push([this.canvas.closest('figure, .chart, #charts > *')?.textContent ?? '', text]);
      };
    `);
    await page.reload();
    await page.waitForFunction('written.length > 50');
    const written = (await page.evaluate('written')) as [string, string][];
    const axis = written.filter(([chart]) => chart.startsWith('Clip fraction')).map(([, text]) => text);
    expect(axis).toContain('0.5');
    expect(axis).not.toContain('100');
    await page.close();
  });

  it('colours tokens by advantage and by log-probability', async () => {
    const { runtime, id } = await madeRun();
    const page = await show(await runtime.report(id));
    const backgrounds = () =>
      page
        .locator('.card:not(.shared) .text span')
        .evaluateAll((spans) =>
          spans.map((span) => (span as unknown as { style: { background: string } }).style.background),
        );
    const byAdvantage = await backgrounds();
    expect(byAdvantage.some((color) => color.includes('--good'))).toBe(true);
    expect(byAdvantage.some((color) => color.includes('--bad'))).toBe(true);
    await page.selectOption('#coloring', 'logprob');
    const byLogprob = await backgrounds();
    expect(new Set(byLogprob).size).toBeGreaterThan(20);
    expect(byLogprob.every((color) => color.includes('--rare'))).toBe(true);
    await page.selectOption('#coloring', 'none');
    expect(new Set(await backgrounds())).toEqual(new Set(['']));
    expect(await page.locator('.text span').first().getAttribute('title')).toMatch(
      /^log-probability -\d+\.\d{3} \(\d+\.\d %\)$/,
    );
    await page.close();
  });

  it('filters by reward', async () => {
    const { runtime, id } = await madeRun();
    const page = await show(await runtime.report(id));
    await page.fill('#least', '0.75');
    await page.waitForFunction(`!document.querySelector('#count')?.textContent?.startsWith('16 of')`);
    await page.waitForSelector('.card:not(.shared)');
    const rewards = await page.locator('.card:not(.shared) strong').allTextContents();
    expect(rewards.length).toBeGreaterThan(0);
    for (const reward of rewards) expect(Number(reward.replace('reward ', ''))).toBeGreaterThanOrEqual(0.75);
    await page.fill('#least', '7');
    await page.waitForFunction(`document.querySelector('#count')?.textContent?.startsWith('0 of')`);
    expect(await page.locator('.option').count()).toBe(0);
    await page.close();
  });

  it('works by keyboard, in dark and in a narrow window', async () => {
    const { runtime, id } = await madeRun();
    const page = await show(await runtime.report(id), {
      viewport: { width: 390, height: 800 },
      colorScheme: 'dark',
    });
    const theme = () => page.evaluate(`document.documentElement.dataset['theme']`);
    expect(await theme()).toBe('dark');
    await shot(page, 'narrow-dark');
    await page.keyboard.press('Tab');
    expect(await page.evaluate(`document.activeElement?.textContent`)).toContain('Skip');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await theme()).toBe('light');
    await page.locator('.chart').first().focus();
    await page.keyboard.press('ArrowLeft');
    expect(await page.locator('.chart .u-legend').first().textContent()).toMatch(/step:?\s*20/);
    await page.locator('#groups').focus();
    await page.keyboard.press('ArrowDown');
    const selected = () => page.locator('.option[aria-selected="true"]').textContent();
    expect(await selected()).toContain('Step 15');
    await page.keyboard.press('End');
    expect(await selected()).toContain('Step 5');
    expect(await page.evaluate(`document.documentElement.scrollWidth <= window.innerWidth`)).toBe(true);
    await page.close();
  });

  it('shows turns, tools, failures, further conversations and evaluations, beside another run', async () => {
    const { runtime, store, id } = await madeRun();
    const other = await runtime.models.create({ base_model: './tiny.gguf', name: 'other' });
    await makeRun(store, other.id, { steps: 30, groups: 30, perGroup: 2, tokens: 3 });
    await runtime.models.log(id, { split: 'train', trajectory_groups: [agentGroup()] });
    const html = await runtime.report(id, { compare: 'other' });
    const page = await show(html, { viewport: { width: 1280, height: 900 }, colorScheme: 'light' });
    await page.selectOption('#split', 'train');
    await page.waitForSelector('.card.failure');
    expect(await page.locator('.option').first().textContent()).toContain(
      '2 trajectories, mean 0.5, 1 failed',
    );
    expect(await page.locator('.card.failure').textContent()).toBe('failedTIMEOUTtoo slow');
    const card = page.locator('.card:not(.shared)').first();
    expect(await card.locator('> .role').allTextContents()).toEqual(['assistant', 'tool', 'assistant']);
    expect(await card.textContent()).toContain('tools: calculate');
    expect(await card.textContent()).toContain('sampled by step 19');
    expect(await card.locator('span[title]').count()).toBe(10);
    await card.locator('summary').click();
    expect(await card.locator('details .text').allTextContents()).toEqual(['Sum it up.', 'It is 5.']);
    const labels = await page.locator('.chart').first().locator('.u-label').allTextContents();
    expect(labels).toEqual([
      'step',
      'train/reward',
      'val/reward',
      'train/reward (other)',
      'val/reward (other)',
      '+ spread',
      '- spread',
    ]);
    expect(await page.locator('#facts').textContent()).toContain('beside other, step 30');
    await shot(page, 'agent');
    await page.close();
  });

  it('says so when there is nothing to show', async () => {
    const { runtime } = await open();
    const { id } = await runtime.models.create({ base_model: 'a' });
    const file = `${newHome()}.html`;
    fs.writeFileSync(file, await runtime.report(id));
    const page = await browser.newPage();
    await page.goto(pathToFileURL(file).href);
    expect(await page.locator('#curves-hint').textContent()).toBe('Nothing was logged or trained yet.');
    expect(await page.locator('#checkpoints').textContent()).toBe('There are none.');
    expect(await page.locator('#count').textContent()).toBe('There are none yet.');
    await page.close();
  });

  it('follows a run that goes on, where a server gives it', async () => {
    const { runtime, store, id } = await madeRun();
    const server = http.createServer(async (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end(await makeReport(store, id));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const page = await browser.newPage();
    await page.clock.install();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect(await page.locator('#count').textContent()).toContain('16 of 16');
    await runtime.models.log(id, {
      trajectory_groups: [{ trajectories: [{ messages_and_choices: [], reward: 1 }] }],
    });
    await page.clock.runFor(11_000);
    await page.waitForFunction(`document.querySelector('#count')?.textContent?.startsWith('17 of 17')`);
    await page.close();
    await new Promise((resolve) => server.close(resolve));
  });

  it('of 500 steps and 5,000 trajectories is smaller than 5 MB and builds what is seen first', async () => {
    const { runtime, id } = await madeRun(FULL);
    const html = await runtime.report(id);
    expect(html.length).toBeLessThan(5e6);
    const page = await show(html);
    const elements = await page.locator('*').count();
    process.stderr.write(
      `report of 500 steps and 5,000 trajectories: ${(html.length / 1e6).toFixed(2)} MB, ${elements} elements\n`,
    );
    expect(elements).toBeLessThan(10_000); // what the time to open the page follows
    await shot(page, 'large');
    const rows = page.locator('#checkpoints tbody tr');
    expect(await rows.count()).toBe(50);
    await page.locator('#checkpoints').focus();
    const scrolled = async (): Promise<number> => {
      await page.keyboard.press('End'); // more rows are built when the end comes into view
      return rows.count();
    };
    await expect.poll(scrolled, { timeout: 60_000 }).toBe(500);
    expect(await rows.last().locator('td').first().textContent()).toBe('1');
    expect(await page.locator('#count').textContent()).toBe(
      '1000 of 1000 trajectories in 100 groups, newest first',
    );
    await page.close();
  }, 180_000);
});
