/** Texts of answers on the chat page: Markdown, code, and HTML that stays text. */
import { describe, expect, it } from 'vitest';
import { CHROMIUM } from '../../browser.ts';
import { useChatPage } from './use-chat-page.ts';

describe.skipIf(!CHROMIUM)('texts on the chat page', () => {
  const chat = useChatPage();

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
    chat.page.on('request', (request) => request.url().startsWith(chat.url) || outside.push(request.url()));
    chat.scripted.script([
      { reasoning: '<img src=x onerror="document.title = \'run\'">' },
      { content: attack },
      { finish: 'stop' },
    ]);
    await chat.ask('<img src=x onerror="document.title = \'run\'">');
    const shown = chat.page.locator('.chat-turns');
    expect(await chat.page.title()).toBe('onpolicy');
    expect(
      await shown
        .locator('script, img, iframe, svg:not(.chat-icon svg), [onerror], [onclick], [onload]')
        .count(),
    ).toBe(0);
    expect(
      await shown.locator('a').evaluateAll((links) => links.map((link) => link.getAttribute('href'))),
    ).toEqual(['https://example.org/a', 'https://example.org/pixel.png']);
    const text = await chat.lastText();
    expect(text).toContain('a <img src=x onerror="document.title = \'run\'"> b');
    expect(text).toContain('<i> stays text 😀');
    expect(outside).toEqual([]);
    await chat.page.reload();
    await chat.page.locator('.chat-timings').waitFor();
    expect(await chat.page.title()).toBe('onpolicy');
  });

  it('lets no text become an element, even where a script asks for it', async () => {
    const attempt = chat.page.evaluate("document.body.innerHTML = '<p>made</p>'");
    await expect(attempt).rejects.toThrow(/TrustedHTML/);
    chat.errors.length = 0; // Chromium reports it
  });

  it('shows code in colours, tables, lists and tasks', async () => {
    const text =
      '# Title\n\n```js\nconst a = "b"; // c\n```\n\n| a | b |\n|:--|--:|\n| 1 | `2` |\n\n1. one\n   - inner\n2. two\n\n- [x] done\n- [ ] open\n\n> said\n\n---\n\n~~gone~~ *soft* line\nbreak';
    chat.scripted.script([{ content: text }, { finish: 'stop' }]);
    await chat.ask('Show');
    const answer = chat.page.locator('.chat-markdown');
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
    await chat.shot('markdown');
  });

  it('keeps the elements of blocks that are complete while the rest comes', async () => {
    chat.scripted.script([
      { content: 'First.\n\nSecond' },
      'wait',
      { content: ' grows.' },
      { finish: 'stop' },
    ]);
    await chat.send('Go');
    await chat.page.getByText('First.').evaluate((element) => element.setAttribute('data-kept', ''));
    await chat.page.getByText('Second', { exact: true }).waitFor();
    chat.scripted.goOn();
    await chat.page.getByText('Second grows.').waitFor();
    expect(await chat.page.locator('[data-kept]').innerText()).toBe('First.');
  });
});
