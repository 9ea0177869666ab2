/** A chat template and a small chat of marked texts -> the parts of it that the template shows. */
import type { ChatTemplate, RenderInput } from '../template/index.ts';

/** Texts that occur in no template. */
export const MARKS = {
  system: 'probesystemx',
  user: 'probeuserx',
  answer: 'probeanswerx',
  more: 'probemorex',
  last: 'probelastx',
  result: 'proberesultx',
  value: 'probevaluex',
  call: 'probecallx',
  tool: 'probetoolx',
  thought: 'probethoughtx',
} as const;

/** A template that needs more steps for such a small chat counts as failing. */
const LIMITS = { maxSteps: 100_000 };

export type ProbeMessage = Readonly<Record<string, unknown>>;

/** Renders a chat. Returns null if the template fails. */
export function tryRender(template: ChatTemplate, input: RenderInput): string | null {
  try {
    const tokens = { bosToken: '<s>', eosToken: '</s>' };
    return template.render(
      { addGenerationPrompt: true, ...tokens, ...input },
      { growsLists: true, limits: LIMITS },
    );
  } catch {
    return null;
  }
}

/** Returns true if each mark is in the text exactly once, and not inside a printed list of parts. */
export function showsOnce(text: string | null, ...marks: readonly string[]): text is string {
  return text !== null && marks.every((mark) => countOf(text, mark) === 1 && !isPrintedPart(text, mark));
}

/** Returns how often a text occurs in another. */
export function countOf(text: string, part: string): number {
  return text.split(part).length - 1;
}

/** Returns true if the mark is inside `{'type': 'text', 'text': 'mark'}`, as Python or JSON prints it. */
function isPrintedPart(text: string, mark: string): boolean {
  return /["'](text|thinking)["']: ?["']$/.test(text.slice(0, text.indexOf(mark)));
}

/** Renders small chats with one template. */
export type Prober = {
  readonly template: ChatTemplate;
  /** Renders a chat. Returns null if the template fails. */
  render(messages: readonly ProbeMessage[], input?: Partial<RenderInput>): string | null;
  /** Returns a message with one text, in the content form of its role. */
  message(role: string, text: string, more?: ProbeMessage): ProbeMessage;
};

export function textPart(text: string): { readonly type: 'text'; readonly text: string } {
  return { type: 'text', text };
}
