/** The page of a server: its models, the token, settings, and a conversation that a reload of the page keeps. */
import { Chat, toMessages } from './chat.ts';
import { CLOCK } from './clock.ts';
import { make } from './elements.ts';
import { PageServer } from './server.ts';
import { readSettings, requestFields, type Settings, toolsOf, writeSettings } from './settings.ts';
import type { Turn } from './turns.ts';

/** Fields that ask the server for usage, progress and times. */
const REPORTS = { stream_options: { include_usage: true }, return_progress: true, return_timings: true };
const TURNS = 'onpolicy.turns';
const TOKEN = 'onpolicy.token';
const MODEL = 'onpolicy.model';
const THEME = 'onpolicy.theme';

const models = byId('model', HTMLSelectElement);
const problem = byId('problem', HTMLParagraphElement);
const settingsDialog = byId('settings', HTMLDialogElement);
const settingsForm = byId('settings-form', HTMLFormElement);
const tokenDialog = byId('token', HTMLDialogElement);
const tokenField = byId('token-field', HTMLInputElement);

let settings = readSettings();
const server = new PageServer(sessionStorage.getItem(TOKEN), askToken);
const chat = new Chat(byId('chat', HTMLElement), {
  greeting: 'What would you like to know?',
  limitHelp: 'Raise “Most tokens” in the settings.',
  async *answer(turns, signal) {
    await listed; // a question may be asked before there is a model to choose
    const request = {
      model: models.value,
      messages: toMessages(turns, settings.system),
      ...requestFields(settings),
    };
    yield* server.answer({ ...request, ...REPORTS }, signal);
  },
  changed: keep,
  tools: () => (settings.clock ? [CLOCK] : []),
});

const listed = listModels();
showTheme(localStorage.getItem(THEME));
chat.setTurns(kept());
addEventListener('beforeunload', () => chat.stop()); // keeps what has come of an answer
byId('new', HTMLButtonElement).onclick = () => {
  chat.setTurns([]);
  keep([]);
  chat.focus();
};
byId('theme', HTMLButtonElement).onclick = () => {
  localStorage.setItem(THEME, isDark() ? 'light' : 'dark');
  showTheme(theme());
};
byId('open-settings', HTMLButtonElement).onclick = openSettings;
models.onchange = () => {
  localStorage.setItem(MODEL, models.value);
  void showModel();
};
settingsForm.onsubmit = saveSettings;
byId('cancel-settings', HTMLButtonElement).onclick = () => settingsDialog.close();
chat.focus();
await listed;

function byId<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`no ${id} in the page`);
  return element;
}

async function listModels(): Promise<void> {
  try {
    const listed = await server.models();
    const chosen = localStorage.getItem(MODEL);
    models.replaceChildren(
      ...listed.map(({ id, max_model_len: size }) =>
        make(
          'option',
          { value: id, title: size === null ? '' : `${size.toLocaleString('en')} tokens of context` },
          nameOf(id),
        ),
      ),
    );
    if (listed.some(({ id }) => id === chosen)) models.value = chosen!;
    await showModel();
  } catch (error) {
    say((error as Error).message);
  }
}

/** The last part of a path or URI. */
function nameOf(id: string): string {
  return id.split(/[/\\]/).at(-1)!;
}

async function showModel(): Promise<void> {
  say('');
  models.title = models.selectedOptions[0]?.title ?? '';
  chat.setImages(await server.seesImages(models.value).catch(() => false));
}

function say(text: string): void {
  problem.textContent = text;
  problem.hidden = text === '';
}

function askToken(): Promise<string> {
  return new Promise((resolve) => {
    byId('token-form', HTMLFormElement).onsubmit = () => {
      sessionStorage.setItem(TOKEN, tokenField.value);
      resolve(tokenField.value);
    };
    tokenDialog.oncancel = (event) => event.preventDefault(); // there is nothing to see without a token
    byId('token-problem', HTMLElement).hidden = sessionStorage.getItem(TOKEN) === null;
    tokenField.value = '';
    if (!tokenDialog.open) tokenDialog.showModal();
  });
}

function openSettings(): void {
  const { clock, ...texts } = settings;
  for (const [name, value] of Object.entries(texts)) field(name).value = value;
  field('clock').checked = clock;
  settingsDialog.showModal();
}

function saveSettings(event: SubmitEvent): void {
  const tools = field('tools');
  try {
    if (tools.value.trim() !== '') toolsOf(tools.value);
  } catch (error) {
    event.preventDefault();
    tools.setCustomValidity((error as Error).message);
    tools.reportValidity();
    tools.oninput = () => tools.setCustomValidity('');
    return;
  }
  const texts = Object.fromEntries(new FormData(settingsForm)) as Omit<Settings, 'clock'>;
  settings = { ...settings, ...texts, clock: field('clock').checked };
  writeSettings(settings);
}

function field(name: string): HTMLInputElement {
  return settingsForm.elements.namedItem(name) as HTMLInputElement;
}

/** Keeps the conversation until this tab is closed. */
function keep(turns: readonly Turn[]): void {
  try {
    sessionStorage.setItem(TURNS, JSON.stringify(turns));
    say('');
  } catch {
    say('This conversation is too large to be kept when the page is loaded again.');
  }
}

function kept(): Turn[] {
  try {
    return JSON.parse(sessionStorage.getItem(TURNS) ?? '[]');
  } catch {
    return [];
  }
}

function theme(): string | null {
  return localStorage.getItem(THEME);
}

function isDark(): boolean {
  return theme() === 'dark' || (theme() === null && matchMedia('(prefers-color-scheme: dark)').matches);
}

/** Shows the page in light, dark, or as the system is. */
function showTheme(chosen: string | null): void {
  if (chosen === null) delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = chosen;
}
