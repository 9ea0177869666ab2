/** Settings of the user -> fields of requests. They stay in the browser. */
import type { ChatCompletionRequest } from '../../protocol/index.ts';
import { CLOCK } from './clock.ts';

export type Settings = {
  readonly system: string;
  /** Empty: the model's default. The same holds for the next two. */
  readonly temperature: string;
  readonly max_tokens: string;
  readonly seed: string;
  /** JSON: the tools of a request. */
  readonly tools: string;
  /** True if the model may ask for the time. */
  readonly clock: boolean;
};

const DEFAULTS: Settings = { system: '', temperature: '', max_tokens: '', seed: '', tools: '', clock: false };
const KEY = 'onpolicy.settings';

export function readSettings(): Settings {
  try {
    return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? '{}') };
  } catch {
    return DEFAULTS;
  }
}

export function writeSettings(settings: Settings): void {
  localStorage.setItem(KEY, JSON.stringify(settings));
}

/** Returns the fields that the settings add to a request. Throws if the tools are not a list in JSON. */
export function requestFields({
  temperature,
  max_tokens,
  seed,
  tools,
  clock,
}: Settings): Partial<ChatCompletionRequest> {
  const offered = [...(clock ? [CLOCK.definition] : []), ...(tools.trim() === '' ? [] : toolsOf(tools))];
  const numbers = Object.entries({ temperature, max_tokens, seed }).filter(([, text]) => text !== '');
  return {
    ...Object.fromEntries(numbers.map(([name, text]) => [name, Number(text)])),
    ...(offered.length === 0 ? {} : { tools: offered }),
  };
}

/** Returns the tools of a request. Throws if the text is no list in JSON. */
export function toolsOf(text: string): NonNullable<ChatCompletionRequest['tools']> {
  const tools: unknown = JSON.parse(text);
  if (!Array.isArray(tools)) throw new Error('Tools: expected a list.');
  return tools;
}
