/** The chat page of a server with scripted answers, open in Chromium. */
import path from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { type Server, serve } from '../../../src/serve/http/index.ts';
import { CHROMIUM, SCREENSHOTS } from '../../browser.ts';
import { createScripted } from './scripted-service.ts';

/** The field in which the user writes. */
export const FIELD = '.chat-composer textarea';
export const ANSWERS = '.chat-answer';

/** The page that a test uses. Each test gets a new one. */
class ChatPage {
  readonly scripted = createScripted();
  /** Errors of scripts and of the console. A test fails if there are any. */
  readonly errors: string[] = [];
  page!: Page;
  #browser!: Browser;
  #server!: Server;

  async start(): Promise<void> {
    this.#browser = await chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox'] });
    this.#server = await serve(this.scripted.service, { page: true });
  }

  async end(): Promise<void> {
    await this.#browser.close();
    await this.#server.close();
  }

  get url(): string {
    return this.#server.url;
  }

  async open(options: Parameters<Browser['newContext']>[0] = {}, url = this.url): Promise<Page> {
    const context = await this.#browser.newContext({ viewport: { width: 1100, height: 760 }, ...options });
    const made = await context.newPage();
    made.setDefaultTimeout(15_000);
    made.on('pageerror', (error) => this.errors.push(error.message));
    made.on('console', (message) => message.type() === 'error' && this.errors.push(message.text()));
    await made.goto(`${url}/`);
    return made;
  }

  async shot(name: string): Promise<void> {
    if (SCREENSHOTS) await this.page.screenshot({ path: path.join(SCREENSHOTS, `chat-${name}.png`) });
  }

  async send(text: string): Promise<void> {
    await this.page.fill(FIELD, text);
    await this.page.press(FIELD, 'Enter');
  }

  /** Asks, and waits for the whole answer. */
  async ask(text: string): Promise<void> {
    const before = await this.page.locator('.chat-timings').count();
    await this.send(text);
    await expect.poll(() => this.page.locator('.chat-timings').count(), { timeout: 15_000 }).toBe(before + 1);
  }

  lastText(): Promise<string> {
    return this.page.locator(`${ANSWERS} .chat-markdown`).last().innerText();
  }

  /** Returns by how many pixels the page is wider than its window. */
  overflow(): Promise<unknown> {
    return this.page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  }
}

/** Returns the page of the tests of this `describe`: starts a server and a browser before them, and opens a new page for each. */
export function useChatPage(): ChatPage {
  const chat = new ChatPage();
  beforeAll(() => chat.start());
  afterAll(() => chat.end());
  beforeEach(async () => {
    chat.scripted.requests.length = 0;
    chat.page = await chat.open();
  });
  afterEach(async () => {
    await chat.page.context().close();
    expect(chat.errors.splice(0)).toEqual([]);
  });
  return chat;
}
