/** The chat page in Chromium, over a server: on scripted answers, and on the embedded model. */
import path from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { packageFile } from '../../../src/common/index.ts';
import { createRuntime } from '../../../src/index.ts';
import { type Server, serve } from '../../../src/serve/http/index.ts';
import { CHROMIUM, SCREENSHOTS } from '../../browser.ts';
import { createScripted } from './scripted-service.ts';

const FIELD = '.chat-composer textarea';
const ANSWERS = '.chat-answer';
/** An image of one pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

describe.skipIf(!CHROMIUM)('the chat page', () => {
  const scripted = createScripted();
  const { requests, script } = scripted;
  const errors: string[] = [];
  let browser: Browser;
  let server: Server;
  let page: Page;

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox'] });
    server = await serve(scripted.service, { page: true });
  });
  afterAll(async () => {
    await browser.close();
    await server.close();
  });
  beforeEach(async () => {
    requests.length = 0;
    page = await open();
  });
  afterEach(async () => {
    await page.context().close();
    expect(errors.splice(0)).toEqual([]);
  });

  async function open(options: Parameters<Browser['newContext']>[0] = {}, url = server.url): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1100, height: 760 }, ...options });
    const made = await context.newPage();
    made.setDefaultTimeout(15_000);
    made.on('pageerror', (error) => errors.push(error.message));
    made.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    await made.goto(`${url}/`);
    return made;
  }
  const shot = async (name: string) => {
    if (SCREENSHOTS) await page.screenshot({ path: path.join(SCREENSHOTS, `chat-${name}.png`) });
  };
  const send = async (text: string) => {
    await page.fill(FIELD, text);
    await page.press(FIELD, 'Enter');
  };
  /** Asks, and waits for the whole answer. */
  const ask = async (text: string) => {
    const before = await page.locator('.chat-timings').count();
    await send(text);
    await expect.poll(() => page.locator('.chat-timings').count(), { timeout: 15_000 }).toBe(before + 1);
  };
  const lastText = () => page.locator(`${ANSWERS} .chat-markdown`).last().innerText();
  const overflow = () =>
    page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');

  it('shows an answer while it comes, its reasoning folded, and what it took', async () => {
    script([
      { reasoning: 'Let me think.' },
      'wait',
      { content: 'It is **bold**' },
      'wait',
      { content: '.' },
      { finish: 'stop' },
    ]);
    await send('Why?');
    await page.getByText(/^Thinking \d/).waitFor();
    expect(await page.getByText('Let me think.').isVisible()).toBe(false);
    scripted.goOn();
    await page.getByText(/^Thought for \d/).waitFor();
    await page.locator('strong', { hasText: 'bold' }).waitFor();
    expect(await page.locator(ANSWERS).getAttribute('aria-busy')).toBe('true');
    scripted.goOn();
    await page.locator('.chat-timings').waitFor();
    expect(await lastText()).toBe('It is bold.');
    await page.getByText(/^Thought for \d/).click();
    expect(await page.getByText('Let me think.').isVisible()).toBe(true);
    expect(await page.locator('.chat-timings').innerText()).toMatch(
      /^scripted · prompt 1,234 tokens, 1,000 of them cached · first after [\d.]+ s · 4 tokens · [\d.]+ tokens\/s$/,
    );
    expect(requests[0]).toMatchObject({
      model: 'scripted',
      messages: [{ role: 'user', content: 'Why?' }],
      stream: true,
    });
  });

  it('never reads HTML of a model as HTML', async () => {
    const attack = [
      '<script>document.title = "run"</script>',
      'a <img src=x onerror="document.title = \'run\'"> b',
      '<svg onload="document.title = \'run\'"></svg>',
      '[link](javascript:document.title="run") [data](data:text/html,<script>1</script>) [good](https://example.org/a)',
      '![pixel](https://example.org/pixel.png)',
      '```html\n<script>document.title = "run"</script>\n```',
      '| <b onclick="x()">a</b> | <iframe src="/"></iframe> |\n|---|---|\n| 1 | 2<br>3 |',
      '&lt;i&gt; stays text &#x1F600;',
    ].join('\n\n');
    const outside: string[] = [];
    page.on('request', (request) => request.url().startsWith(server.url) || outside.push(request.url()));
    script([
      { reasoning: '<img src=x onerror="document.title = \'run\'">' },
      { content: attack },
      { finish: 'stop' },
    ]);
    await ask('<img src=x onerror="document.title = \'run\'">');
    const shown = page.locator('.chat-turns');
    expect(await page.title()).toBe('onpolicy');
    expect(
      await shown
        .locator('script, img, iframe, svg:not(.chat-icon svg), [onerror], [onclick], [onload]')
        .count(),
    ).toBe(0);
    expect(
      await shown.locator('a').evaluateAll((links) => links.map((link) => link.getAttribute('href'))),
    ).toEqual(['https://example.org/a', 'https://example.org/pixel.png']);
    const text = await lastText();
    expect(text).toContain('a <img src=x onerror="document.title = \'run\'"> b');
    expect(text).toContain('<i> stays text 😀');
    expect(outside).toEqual([]);
    await page.reload();
    await page.locator('.chat-timings').waitFor();
    expect(await page.title()).toBe('onpolicy');
  });

  it('lets no text become an element, even where a script asks for it', async () => {
    const attempt = page.evaluate("document.body.innerHTML = '<p>made</p>'");
    await expect(attempt).rejects.toThrow(/TrustedHTML/);
    errors.length = 0; // Chromium reports it
  });

  it('shows code in colours, tables, lists and tasks', async () => {
    const text =
      '# Title\n\n```js\nconst a = "b"; // c\n```\n\n| a | b |\n|:--|--:|\n| 1 | `2` |\n\n1. one\n   - inner\n2. two\n\n- [x] done\n- [ ] open\n\n> said\n\n---\n\n~~gone~~ *soft* line\nbreak';
    script([{ content: text }, { finish: 'stop' }]);
    await ask('Show');
    const answer = page.locator('.chat-markdown');
    expect(await answer.locator('.chat-code .hljs-keyword').innerText()).toBe('const');
    expect(await answer.locator('.chat-code span').first().innerText()).toBe('js');
    expect(await answer.locator('td').allInnerTexts()).toEqual(['1', '2']);
    expect(await answer.locator('ol > li').allInnerTexts()).toEqual([
      expect.stringMatching(/one\s+inner/),
      'two',
    ]);
    expect(
      await answer
        .locator('input[type=checkbox]')
        .evaluateAll((boxes) => boxes.map((box) => (box as never as { checked: boolean }).checked)),
    ).toEqual([true, false]);
    for (const tag of ['h2', 'blockquote', 'hr', 'del', 'em', 'br'])
      expect(await answer.locator(tag).count(), tag).toBe(1);
    await shot('markdown');
  });

  it('keeps the elements of blocks that are complete while the rest comes', async () => {
    script([{ content: 'First.\n\nSecond' }, 'wait', { content: ' grows.' }, { finish: 'stop' }]);
    await send('Go');
    await page.getByText('First.').evaluate((element) => element.setAttribute('data-kept', ''));
    await page.getByText('Second', { exact: true }).waitFor();
    scripted.goOn();
    await page.getByText('Second grows.').waitFor();
    expect(await page.locator('[data-kept]').innerText()).toBe('First.');
  });

  it('stops an answer with Esc, keeps what came, and answers again', async () => {
    script([{ content: 'Half' }, 'wait'], [{ content: 'Whole' }, { finish: 'stop' }]);
    const before = scripted.aborted();
    await send('Go');
    await page.getByText('Half').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('Stopped.').waitFor();
    await expect.poll(scripted.aborted).toBe(before + 1);
    expect(await lastText()).toBe('Half');
    await page.getByRole('button', { name: 'Answer again' }).click();
    await page.getByText('Whole').waitFor();
    expect(await page.locator(ANSWERS).count()).toBe(1);
    expect(requests[1]!.messages).toEqual(requests[0]!.messages);
  });

  it('changes a question from the keyboard, and asks from there again', async () => {
    script(
      [{ content: 'A' }, { finish: 'stop' }],
      [{ content: 'B' }, { finish: 'stop' }],
      [{ content: 'C' }, { finish: 'stop' }],
    );
    await ask('one');
    await ask('two');
    expect(requests[1]!.messages.map(({ content }) => content)).toEqual(['one', 'A', 'two']);
    await page.press(FIELD, 'ArrowUp');
    expect(await page.locator('.chat-editing textarea').inputValue()).toBe('two');
    await page.keyboard.press('Escape');
    expect(await page.locator('.chat-editing').count()).toBe(0);
    await page.getByRole('button', { name: 'Change the question' }).first().click();
    await page.locator('.chat-editing textarea').fill('other');
    await page.keyboard.press('Enter');
    await page.getByText('C', { exact: true }).waitFor();
    expect(requests[2]!.messages.map(({ content }) => content)).toEqual(['other']);
    expect(await page.locator('.chat-turn').count()).toBe(2);
  });

  it('says why an answer ended early', async () => {
    const note = (text: string) =>
      page.locator('.chat-turn').last().locator('.chat-note', { hasText: text }).waitFor();
    script(
      [{ reasoning: 'hm' }, { finish: 'length' }],
      [{ content: 'cut' }, { finish: 'length' }],
      [{ content: 'b' }, { error: 'it broke' }],
      [{ finish: 'stop' }],
    );
    await ask('a');
    await note('The answer ended while thinking');
    await ask('b');
    await note('The answer was cut off at the limit of tokens.');
    await ask('c');
    await note('it broke');
    await ask('d');
    await note('The answer is empty.');
  });

  it('shows tools as they run: its own clock, and those whose result the user gives', async () => {
    const call = (name: string, id: string, text: string, index = 0) => ({
      tool_calls: [{ index, id, type: 'function', function: { name, arguments: text } }],
    });
    script(
      [
        call('current_time', 'c1', '{}'),
        call('weather', 'c2', '{"city":', 1),
        'wait',
        { tool_calls: [{ index: 1, function: { arguments: '"Lima"}' } }] },
        { finish: 'tool_calls' },
      ],
      [{ content: 'It is warm.' }, { finish: 'stop' }],
    );
    await page.click('#open-settings');
    await page.check('[name=clock]');
    await page.fill('[name=tools]', 'nothing');
    await page.getByRole('button', { name: 'Save' }).click();
    expect(
      await page
        .locator('[name=tools]')
        .evaluate((field) => (field as never as { validationMessage: string }).validationMessage),
    ).not.toBe('');
    await page.fill('[name=tools]', '[{"type":"function","function":{"name":"weather"}}]');
    await page.getByRole('button', { name: 'Save' }).click();
    await send('How is it?');
    await page.getByText('is being called').last().waitFor();
    scripted.goOn();
    await page.getByText('waits for its result').waitFor();
    await shot('tools');
    await page.getByLabel('The result of weather').fill('20 degrees');
    await page.keyboard.press('Enter');
    await page.getByText('It is warm.').waitFor();
    const [first, second] = requests;
    expect(first!.tools!.map((tool) => tool.type === 'function' && tool.function.name)).toEqual([
      'current_time',
      'weather',
    ]);
    const [, assistant, clock, weather] = second!.messages;
    expect(assistant).toMatchObject({
      role: 'assistant',
      tool_calls: [{ id: 'c1' }, { id: 'c2', function: { name: 'weather', arguments: '{"city":"Lima"}' } }],
    });
    expect(clock).toMatchObject({
      role: 'tool',
      tool_call_id: 'c1',
      content: expect.stringContaining('"utc"'),
    });
    expect(weather).toEqual({ role: 'tool', tool_call_id: 'c2', content: '20 degrees' });
  });

  it('sends images that are chosen', async () => {
    script([{ content: 'A dot' }, { finish: 'stop' }]);
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: PNG });
    await page.locator('.chat-composer img').waitFor();
    await ask('What is this?');
    const [message] = requests[0]!.messages;
    expect(message).toEqual({
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG.toString('base64')}` } },
        { type: 'text', text: 'What is this?' },
      ],
    });
    expect(
      await page
        .locator('.chat-user img')
        .evaluate((image) => (image as never as { naturalWidth: number }).naturalWidth),
    ).toBe(1);
    expect(await page.locator('.chat-composer img').count()).toBe(0);
  });

  it('offers no images for a model that sees none', async () => {
    const blind = await serve(createScripted(['completion']).service, { page: true });
    const other = await open({}, blind.url);
    await other.locator('#model option').first().waitFor({ state: 'attached' });
    expect(await other.getByRole('button', { name: 'Add images' }).isVisible()).toBe(false);
    await other.context().close();
    await blind.close();
  });

  it('sends the settings, and the model that is chosen, and keeps both', async () => {
    script([{ content: 'ok' }, { finish: 'stop' }]);
    await page.selectOption('#model', { label: 'other.gguf' });
    await page.click('#open-settings');
    await page.fill('[name=system]', 'Be brief.');
    await page.fill('[name=temperature]', '0.5');
    await page.fill('[name=max_tokens]', '64');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.reload();
    await ask('Hi');
    expect(requests[0]).toMatchObject({
      model: 'models/other.gguf',
      temperature: 0.5,
      max_tokens: 64,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
    });
    expect(requests[0]).not.toHaveProperty('seed');
    expect(requests[0]).not.toHaveProperty('tools');
  });

  it('keeps the conversation over a reload, until a new one begins', async () => {
    script(
      [{ reasoning: 'r' }, { content: 'Kept' }, { finish: 'stop' }],
      [{ content: 'More' }, { finish: 'stop' }],
    );
    await ask('Hi');
    await page.reload();
    await page.getByText('Kept', { exact: true }).waitFor();
    await ask('And?');
    expect(requests[1]!.messages).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Kept', reasoning: 'r' },
      { role: 'user', content: 'And?' },
    ]);
    await page.click('#new');
    expect(await page.locator('.chat-turn').count()).toBe(0);
    await page.reload();
    expect(await page.locator('.chat-turn').count()).toBe(0);
  });

  it('asks for the token, again if it is wrong, and keeps it for the tab', async () => {
    const guarded = await serve(scripted.service, { page: true, tokens: ['secret'] });
    const other = await open({}, guarded.url);
    await other.locator('#token[open]').waitFor();
    await other.fill('#token-field', 'wrong');
    await other.keyboard.press('Enter');
    await other.getByText('The token was not accepted.').waitFor();
    await other.fill('#token-field', 'secret');
    await other.keyboard.press('Enter');
    await other.locator('#model option').first().waitFor({ state: 'attached' });
    script([{ content: 'Welcome' }, { finish: 'stop' }]);
    await other.fill(FIELD, 'Hi');
    await other.press(FIELD, 'Enter');
    await other.getByText('Welcome').waitFor();
    await other.reload();
    await other.locator('#model option').first().waitFor({ state: 'attached' });
    expect(await other.locator('#token[open]').count()).toBe(0);
    await other.context().close();
    await guarded.close();
    expect(errors.splice(0).every((error) => error.includes('401'))).toBe(true);
  });

  it('follows the end of an answer, unless its reader is elsewhere', async () => {
    const long = Array.from({ length: 80 }, (_, i) => `Line ${i}.`).join('\n\n');
    script([{ content: long }, 'wait', { content: '\n\nLast.' }, { finish: 'stop' }]);
    await send('Go');
    await page.getByText('Line 79.').waitFor();
    const scroller = page.locator('.chat-scroller');
    const left = () =>
      scroller.evaluate((element) => element.scrollHeight - element.clientHeight - element.scrollTop);
    await expect.poll(left).toBeLessThan(2);
    await scroller.evaluate((element) => element.scrollTo(0, 0));
    await page.getByRole('button', { name: 'To the end' }).waitFor();
    scripted.goOn();
    await page.locator('.chat-timings').waitFor({ state: 'attached' });
    expect(await scroller.evaluate((element) => element.scrollTop)).toBe(0);
    await page.getByRole('button', { name: 'To the end' }).click();
    await expect.poll(left).toBeLessThan(2);
  });

  it('fits 390 pixels, in light and dark', async () => {
    const wide = `A ${'verylongword'.repeat(30)} https://example.org/${'a'.repeat(200)}\n\n\`\`\`js\n${'const x = 1; '.repeat(30)}\n\`\`\`\n\n|${'column|'.repeat(12)}\n|${'-|'.repeat(12)}\n|${'value|'.repeat(12)}`;
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.context().close();
      page = await open({ viewport: { width: 390, height: 800 }, colorScheme });
      script([{ reasoning: 'x'.repeat(300) }, { content: wide }, { finish: 'stop' }]);
      await ask(`Tell me ${'about_this_and_that'.repeat(10)}`);
      await page.getByText(/^Thought for/).click();
      expect(await overflow()).toBe(0);
      await shot(`narrow-${colorScheme}`);
      await page.click('#open-settings');
      expect(await overflow()).toBe(0);
      expect((await page.locator('#settings').boundingBox())!.width).toBeLessThanOrEqual(390);
      await shot(`settings-${colorScheme}`);
      await page.getByRole('button', { name: 'Cancel' }).click();
      const back = await page.evaluate('getComputedStyle(document.body).backgroundColor');
      expect(back).toBe(colorScheme === 'dark' ? 'rgb(21, 24, 28)' : 'rgb(255, 255, 255)');
      await page.click('#theme');
      expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).not.toBe(back);
    }
  });

  it('is used from the keyboard alone, and every control has a name', async () => {
    script([{ content: 'Yes' }, { finish: 'stop' }]);
    await page.locator('#model option').first().waitFor({ state: 'attached' });
    await page.locator(FIELD).focus();
    await page.keyboard.type('One');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('two');
    await page.keyboard.press('Enter');
    await page.getByText('Yes').waitFor();
    expect(requests[0]!.messages).toEqual([{ role: 'user', content: 'One\ntwo' }]);
    expect(await page.evaluate(`document.activeElement.matches('${FIELD}')`)).toBe(true);
    const unnamed = await page.evaluate(
      `[...document.querySelectorAll('button, textarea, select, input')].filter((one) =>
        !(one.ariaLabel || one.innerText?.trim() || one.labels?.length || one.type === 'file')).map((one) => one.outerHTML)`,
    );
    expect(unnamed).toEqual([]);
    await page.keyboard.press('Shift+Tab');
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Add images');
  });
});

describe.skipIf(!CHROMIUM)('the chat page on the embedded model', () => {
  it('answers', async () => {
    const runtime = await createRuntime({ model: packageFile('models/onpolicy-tiny.gguf'), threads: 1 });
    const server = await serve(runtime, { page: true });
    const browser = await chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox'] });
    try {
      const page = await browser.newPage();
      await page.goto(`${server.url}/`);
      await page.click('#open-settings');
      await page.fill('[name=temperature]', '0');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.fill(FIELD, 'What is the capital of Peru?');
      await page.press(FIELD, 'Enter');
      await page.locator('.chat-timings').waitFor();
      expect(await page.locator(`${ANSWERS} .chat-markdown`).innerText()).toBe(
        'The capital of Peru is Lima.',
      );
      expect(await page.locator('.chat-timings').innerText()).toMatch(/prompt 17 tokens .* 10 tokens/);
    } finally {
      await browser.close();
      await server.close();
      await runtime.close();
    }
  });
});
