/** The chat page in Chromium, over a server: on scripted answers, and on the embedded model. */
import { chromium } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { packageFile } from '../../../src/common/index.ts';
import { createRuntime } from '../../../src/index.ts';
import { serve } from '../../../src/serve/http/index.ts';
import { CHROMIUM } from '../../browser.ts';
import { createScripted } from './scripted-service.ts';
import { ANSWERS, FIELD, useChatPage } from './use-chat-page.ts';

/** An image of one pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

describe.skipIf(!CHROMIUM)('the chat page', () => {
  const chat = useChatPage();

  it('shows an answer while it comes, its reasoning folded, and what it took', async () => {
    chat.scripted.script([
      { reasoning: 'Let me think.' },
      'wait',
      { content: 'It is **bold**' },
      'wait',
      { content: '.' },
      { finish: 'stop' },
    ]);
    await chat.send('Why?');
    await chat.page.getByText(/^Thinking \d/).waitFor();
    expect(await chat.page.getByText('Let me think.').isVisible()).toBe(false);
    chat.scripted.goOn();
    await chat.page.getByText(/^Thought for \d/).waitFor();
    await chat.page.locator('strong', { hasText: 'bold' }).waitFor();
    expect(await chat.page.locator(ANSWERS).getAttribute('aria-busy')).toBe('true');
    chat.scripted.goOn();
    await chat.page.locator('.chat-timings').waitFor();
    expect(await chat.lastText()).toBe('It is bold.');
    await chat.page.getByText(/^Thought for \d/).click();
    expect(await chat.page.getByText('Let me think.').isVisible()).toBe(true);
    expect(await chat.page.locator('.chat-timings').innerText()).toMatch(
      /^scripted · prompt 1,234 tokens, 1,000 of them cached · first after [\d.]+ s · 4 tokens · [\d.]+ tokens\/s$/,
    );
    expect(chat.scripted.requests[0]).toMatchObject({
      model: 'scripted',
      messages: [{ role: 'user', content: 'Why?' }],
      stream: true,
    });
  });

  it('shows how much of the prompt is read, and the speed that the server measured', async () => {
    chat.scripted.script([
      { read: 512, of: 2048 },
      'wait',
      { read: 2048, of: 2048 },
      { content: 'Yes.' },
      { finish: 'stop' },
      { perSecond: 42 },
    ]);
    await chat.send('A long question');
    await chat.page.getByText(/^Reading 512 of 2,048 tokens/).waitFor();
    const bar = chat.page.locator('.chat-waiting progress');
    expect([await bar.getAttribute('value'), await bar.getAttribute('max')]).toEqual(['512', '2048']);
    await chat.shot('progress');
    chat.scripted.goOn();
    await chat.page.locator('.chat-timings').waitFor();
    expect(await chat.page.locator('.chat-waiting').isVisible()).toBe(false);
    expect(await chat.page.locator('.chat-timings').innerText()).toMatch(/ · 42 tokens\/s$/);
    expect(chat.scripted.requests[0]).toMatchObject({ return_progress: true, return_timings: true });
  });

  it('stops an answer with Esc, keeps what came, and answers again', async () => {
    chat.scripted.script([{ content: 'Half' }, 'wait'], [{ content: 'Whole' }, { finish: 'stop' }]);
    const before = chat.scripted.aborted();
    await chat.send('Go');
    await chat.page.getByText('Half').waitFor();
    await chat.page.keyboard.press('Escape');
    await chat.page.getByText('Stopped.').waitFor();
    await expect.poll(chat.scripted.aborted).toBe(before + 1);
    expect(await chat.lastText()).toBe('Half');
    await chat.page.getByRole('button', { name: 'Answer again' }).click();
    await chat.page.getByText('Whole').waitFor();
    expect(await chat.page.locator(ANSWERS).count()).toBe(1);
    expect(chat.scripted.requests[1]!.messages).toEqual(chat.scripted.requests[0]!.messages);
  });

  it('changes a question from the keyboard, and asks from there again', async () => {
    chat.scripted.script(
      [{ content: 'A' }, { finish: 'stop' }],
      [{ content: 'B' }, { finish: 'stop' }],
      [{ content: 'C' }, { finish: 'stop' }],
    );
    await chat.ask('one');
    await chat.ask('two');
    const asked = () => chat.scripted.requests.map(({ messages }) => messages.map(({ content }) => content));
    await expect.poll(asked).toEqual([['one'], ['one', 'A', 'two']]);
    await chat.page.press(FIELD, 'ArrowUp');
    expect(await chat.page.locator('.chat-editing textarea').inputValue()).toBe('two');
    await chat.page.keyboard.press('Escape');
    await chat.page.locator('.chat-editing').waitFor({ state: 'detached' });
    await chat.page.getByRole('button', { name: 'Change the question' }).first().click();
    await chat.page.locator('.chat-editing textarea').fill('other');
    await chat.page.keyboard.press('Enter');
    await chat.page.getByText('C', { exact: true }).waitFor();
    expect(chat.scripted.requests[2]!.messages.map(({ content }) => content)).toEqual(['other']);
    await expect.poll(() => chat.page.locator('.chat-turn').count()).toBe(2);
  });

  it('answers a question that was asked before the models were listed', async () => {
    chat.scripted.script([{ content: 'A' }, { finish: 'stop' }]);
    let goOn = (): void => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    await chat.page.route('**/v1/models*', async (route) => {
      await held;
      await route.continue();
    });
    await chat.page.reload();
    await chat.send('one');
    await chat.page.locator('.chat-waiting').waitFor();
    expect(chat.scripted.requests).toEqual([]);
    goOn();
    await chat.page.getByText('A', { exact: true }).waitFor();
    expect(chat.scripted.requests).toMatchObject([{ model: 'scripted' }]);
  });

  it('says why an answer ended early', async () => {
    const note = (text: string) =>
      chat.page.locator('.chat-turn').last().locator('.chat-note', { hasText: text }).waitFor();
    chat.scripted.script(
      [{ reasoning: 'hm' }, { finish: 'length' }],
      [{ content: 'cut' }, { finish: 'length' }],
      [{ content: 'b' }, { error: 'it broke' }],
      [{ finish: 'stop' }],
    );
    await chat.ask('a');
    await note('The answer ended while thinking');
    await chat.ask('b');
    await note('The answer was cut off at the limit of tokens.');
    await chat.ask('c');
    await note('it broke');
    await chat.ask('d');
    await note('The answer is empty.');
  });

  it('shows tools as they run: its own clock, and those whose result the user gives', async () => {
    const call = (name: string, id: string, text: string, index = 0) => ({
      tool_calls: [{ index, id, type: 'function', function: { name, arguments: text } }],
    });
    chat.scripted.script(
      [
        call('current_time', 'c1', '{}'),
        call('weather', 'c2', '{"city":', 1),
        'wait',
        { tool_calls: [{ index: 1, function: { arguments: '"Lima"}' } }] },
        { finish: 'tool_calls' },
      ],
      [{ content: 'It is warm.' }, { finish: 'stop' }],
    );
    await chat.page.click('#open-settings');
    await chat.page.check('[name=clock]');
    await chat.page.fill('[name=tools]', 'nothing');
    await chat.page.getByRole('button', { name: 'Save' }).click();
    expect(
      await chat.page
        .locator('[name=tools]')
        .evaluate((field) => (field as never as { validationMessage: string }).validationMessage),
    ).not.toBe('');
    await chat.page.fill('[name=tools]', '[{"type":"function","function":{"name":"weather"}}]');
    await chat.page.getByRole('button', { name: 'Save' }).click();
    await chat.send('How is it?');
    await chat.page.getByText('is being called').last().waitFor();
    chat.scripted.goOn();
    await chat.page.getByText('waits for its result').waitFor();
    await chat.shot('tools');
    await chat.page.getByLabel('The result of weather').fill('20 degrees');
    await chat.page.keyboard.press('Enter');
    await chat.page.getByText('It is warm.').waitFor();
    const [first, second] = chat.scripted.requests;
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
    chat.scripted.script([{ content: 'A dot' }, { finish: 'stop' }]);
    await chat.page
      .locator('input[type=file]')
      .setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: PNG });
    await chat.page.locator('.chat-composer img').waitFor();
    await chat.ask('What is this?');
    const [message] = chat.scripted.requests[0]!.messages;
    expect(message).toEqual({
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG.toString('base64')}` } },
        { type: 'text', text: 'What is this?' },
      ],
    });
    expect(
      await chat.page
        .locator('.chat-user img')
        .evaluate((image) => (image as never as { naturalWidth: number }).naturalWidth),
    ).toBe(1);
    expect(await chat.page.locator('.chat-composer img').count()).toBe(0);
  });

  it('offers no images for a model that sees none', async () => {
    const blind = await serve(createScripted(['completion']).service, { page: true });
    const other = await chat.open({}, blind.url);
    await other.locator('#model option').first().waitFor({ state: 'attached' });
    expect(await other.getByRole('button', { name: 'Add images' }).isVisible()).toBe(false);
    await other.context().close();
    await blind.close();
  });

  it('sends the settings, and the model that is chosen, and keeps both', async () => {
    chat.scripted.script([{ content: 'ok' }, { finish: 'stop' }]);
    await chat.page.selectOption('#model', { label: 'other.gguf' });
    await chat.page.click('#open-settings');
    await chat.page.fill('[name=system]', 'Be brief.');
    await chat.page.fill('[name=temperature]', '0.5');
    await chat.page.fill('[name=max_tokens]', '64');
    await chat.page.getByRole('button', { name: 'Save' }).click();
    await chat.page.reload();
    await chat.ask('Hi');
    expect(chat.scripted.requests[0]).toMatchObject({
      model: 'models/other.gguf',
      temperature: 0.5,
      max_tokens: 64,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
    });
    expect(chat.scripted.requests[0]).not.toHaveProperty('seed');
    expect(chat.scripted.requests[0]).not.toHaveProperty('tools');
  });

  it('keeps the conversation over a reload, until a new one begins', async () => {
    chat.scripted.script(
      [{ reasoning: 'r' }, { content: 'Kept' }, { finish: 'stop' }],
      [{ content: 'More' }, { finish: 'stop' }],
    );
    await chat.ask('Hi');
    await chat.page.reload();
    await chat.page.getByText('Kept', { exact: true }).waitFor();
    await chat.ask('And?');
    expect(chat.scripted.requests[1]!.messages).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Kept', reasoning: 'r' },
      { role: 'user', content: 'And?' },
    ]);
    await chat.page.click('#new');
    expect(await chat.page.locator('.chat-turn').count()).toBe(0);
    await chat.page.reload();
    expect(await chat.page.locator('.chat-turn').count()).toBe(0);
  });

  it('keeps what has come of an answer over a reload', async () => {
    chat.scripted.script([{ content: 'Half' }, 'wait'], [{ content: 'More' }, { finish: 'stop' }]);
    await chat.send('Hi');
    await chat.page.getByText('Half', { exact: true }).waitFor();
    await chat.page.reload();
    await chat.page.getByText('Half', { exact: true }).waitFor();
    await chat.page.getByText('Stopped.', { exact: true }).waitFor();
    await chat.ask('And?');
    expect(chat.scripted.requests[1]!.messages).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Half' },
      { role: 'user', content: 'And?' },
    ]);
  });

  it('asks for the token, again if it is wrong, and keeps it for the tab', async () => {
    const guarded = await serve(chat.scripted.service, { page: true, tokens: ['secret'] });
    const other = await chat.open({}, guarded.url);
    await other.locator('#token[open]').waitFor();
    await other.fill('#token-field', 'wrong');
    await other.keyboard.press('Enter');
    await other.getByText('The token was not accepted.').waitFor();
    await other.fill('#token-field', 'secret');
    await other.keyboard.press('Enter');
    await other.locator('#model option').first().waitFor({ state: 'attached' });
    chat.scripted.script([{ content: 'Welcome' }, { finish: 'stop' }]);
    await other.fill(FIELD, 'Hi');
    await other.press(FIELD, 'Enter');
    await other.getByText('Welcome').waitFor();
    await other.reload();
    await other.locator('#model option').first().waitFor({ state: 'attached' });
    expect(await other.locator('#token[open]').count()).toBe(0);
    await other.context().close();
    await guarded.close();
    expect(chat.errors.splice(0).every((error) => error.includes('401'))).toBe(true);
  });

  it('follows the end of an answer, unless its reader is elsewhere', async () => {
    const long = Array.from({ length: 80 }, (_, i) => `Line ${i}.`).join('\n\n');
    chat.scripted.script([{ content: long }, 'wait', { content: '\n\nLast.' }, { finish: 'stop' }]);
    await chat.send('Go');
    await chat.page.getByText('Line 79.').waitFor();
    const scroller = chat.page.locator('.chat-scroller');
    const left = () =>
      scroller.evaluate((element) => element.scrollHeight - element.clientHeight - element.scrollTop);
    await expect.poll(left).toBeLessThan(2);
    await scroller.evaluate((element) => element.scrollTo(0, 0));
    await chat.page.getByRole('button', { name: 'To the end' }).waitFor();
    chat.scripted.goOn();
    await chat.page.locator('.chat-timings').waitFor({ state: 'attached' });
    expect(await scroller.evaluate((element) => element.scrollTop)).toBe(0);
    await chat.page.getByRole('button', { name: 'To the end' }).click();
    await expect.poll(left).toBeLessThan(2);
  });

  it('fits 390 pixels, in light and dark', async () => {
    const wide = `A ${'verylongword'.repeat(30)} https://example.org/${'a'.repeat(200)}\n\n\`\`\`js\n${'const x = 1; '.repeat(30)}\n\`\`\`\n\n|${'column|'.repeat(12)}\n|${'-|'.repeat(12)}\n|${'value|'.repeat(12)}`;
    for (const colorScheme of ['light', 'dark'] as const) {
      await chat.page.context().close();
      chat.page = await chat.open({ viewport: { width: 390, height: 800 }, colorScheme });
      chat.scripted.script([{ reasoning: 'x'.repeat(300) }, { content: wide }, { finish: 'stop' }]);
      await chat.ask(`Tell me ${'about_this_and_that'.repeat(10)}`);
      await chat.page.getByText(/^Thought for/).click();
      expect(await chat.overflow()).toBe(0);
      await chat.shot(`narrow-${colorScheme}`);
      await chat.page.click('#open-settings');
      expect(await chat.overflow()).toBe(0);
      expect((await chat.page.locator('#settings').boundingBox())!.width).toBeLessThanOrEqual(390);
      await chat.shot(`settings-${colorScheme}`);
      await chat.page.getByRole('button', { name: 'Cancel' }).click();
      const back = await chat.page.evaluate('getComputedStyle(document.body).backgroundColor');
      expect(back).toBe(colorScheme === 'dark' ? 'rgb(21, 24, 28)' : 'rgb(255, 255, 255)');
      await chat.page.click('#theme');
      expect(await chat.page.evaluate('getComputedStyle(document.body).backgroundColor')).not.toBe(back);
    }
  });

  it('is used from the keyboard alone, and every control has a name', async () => {
    chat.scripted.script([{ content: 'Yes' }, { finish: 'stop' }]);
    await chat.page.locator('#model option').first().waitFor({ state: 'attached' });
    await chat.page.locator(FIELD).focus();
    await chat.page.keyboard.type('One');
    await chat.page.keyboard.press('Shift+Enter');
    await chat.page.keyboard.type('two');
    await chat.page.keyboard.press('Enter');
    await chat.page.getByText('Yes').waitFor();
    expect(chat.scripted.requests[0]!.messages).toEqual([{ role: 'user', content: 'One\ntwo' }]);
    expect(await chat.page.evaluate(`document.activeElement.matches('${FIELD}')`)).toBe(true);
    const unnamed = await chat.page.evaluate(
      `[...document.querySelectorAll('button, textarea, select, input')].filter((one) =>
        !(one.ariaLabel || one.innerText?.trim() || one.labels?.length || one.type === 'file')).map((one) => one.outerHTML)`,
    );
    expect(unnamed).toEqual([]);
    await chat.page.keyboard.press('Shift+Tab');
    expect(await chat.page.evaluate('document.activeElement.ariaLabel')).toBe('Add images');
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
