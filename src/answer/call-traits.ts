/** A chat template -> how it takes the calls of earlier turns, their results and the reasoning before them. */
import { countOf, MARKS, type ProbeMessage, type Prober, showsOnce, textPart } from './template-probe.ts';
import { PROBE_TOOL } from './tool-traits.ts';

/** Arguments of a call as an object or as JSON text. */
type ArgumentForm = 'object' | 'text';

/** Empty content beside calls; undefined means that the message has no such field. */
type EmptyContent = '' | null | undefined;

/**
 * Fields that hold the reasoning. `fields`: `reasoning` and `reasoning_content`. `thinking`: these and `thinking`. `part`: a content part
 * of the type `thinking`.
 */
export type ReasoningForm = 'fields' | 'thinking' | 'part';

/** Ids of calls: any; nine letters and digits; or `functions.NAME:INDEX`, for a template that writes no other name of the function. */
export type IdForm = 'any' | 'nine' | 'named';

export type CallTraits = {
  readonly arguments: ArgumentForm;
  /** True if arguments that are not valid JSON are shown unchanged. */
  readonly showsBroken: boolean;
  readonly emptyContent: EmptyContent;
  readonly ids: IdForm;
  /** True if a call without an id must be given one. */
  readonly needsId: boolean;
  /** True if the template shows any part of a call. */
  readonly showsCalls: boolean;
  /** True if a message of the role `tool` is shown. */
  readonly showsResults: boolean;
  /** True if a result is shown only when it has the name of its function. */
  readonly needsName: boolean;
  readonly reasoning: ReasoningForm;
  /** True if content beside calls and reasoning must be written into the reasoning, because the template would drop it. */
  readonly joinsContent: boolean;
  /** Renders a chat with a call and a result of this content. Returns null if the template fails. */
  renderResult(content: unknown): string | null;
};

const { user: U, answer: A, result: R, value: V, call: NAME, thought: T } = MARKS;

const EMPTY_CONTENTS: readonly [EmptyContent, ...EmptyContent[]] = ['', null, undefined];
const NINE = 'probeid01';
const LONG_ID = 'call_0123456789abcdef';

/** A probe chat with one call: the parts that templates take in different forms. */
type Chat = {
  readonly arguments: unknown;
  readonly content: unknown;
  readonly result: unknown;
  readonly id: string | null;
  readonly hasName: boolean;
  readonly fields?: ProbeMessage;
};

const OBJECT = { probe: V };
const TEXT = JSON.stringify(OBJECT);
const BROKEN = `{"probe": "${V}`;

export function findCallTraits(prober: Prober): CallTraits {
  const render = (chat: Chat, kwargs: Readonly<Record<string, unknown>> = {}): string | null =>
    prober.render(
      [
        prober.message('user', U),
        callMessage(chat),
        {
          role: 'tool',
          content: chat.result,
          ...(chat.id === null ? {} : { tool_call_id: chat.id }),
          ...(chat.hasName ? { name: NAME } : {}),
        },
      ],
      { tools: [PROBE_TOOL], kwargs },
    );
  const { chat: best, text } = bestChat(render);
  const showsCalls = text?.includes(V) ?? false;
  const showsResults = showsOnce(text, R);
  const isShown = (rendered: string | null): rendered is string =>
    rendered !== null && (!showsCalls || rendered.includes(V)) && (!showsResults || showsOnce(rendered, R));
  const emptyContent = shortest(EMPTY_CONTENTS, (content) => {
    const rendered = render({ ...best, content });
    return isShown(rendered) ? rendered : null;
  });
  const chat = { ...best, content: emptyContent };
  const reasoning = findReasoning(chat, (given, kwargs) => {
    const rendered = render(given, kwargs);
    return isShown(rendered) && showsOnce(rendered, T);
  });
  const withContent = (fields: ProbeMessage, content: unknown) =>
    showsOnce(render({ ...chat, content, fields }), A, T);
  const both = reasoning === 'part' ? thinkingContent(A) : A;
  const joined = reasoningFields(reasoning, `${T} ${A}`);
  return {
    arguments: typeof chat.arguments === 'string' ? 'text' : 'object',
    showsBroken: render({ ...chat, arguments: BROKEN })?.includes(V) ?? false,
    emptyContent,
    ids: idForm(text ?? '', isShown(render({ ...chat, id: LONG_ID }))),
    needsId: needsId(text, render({ ...chat, id: null })),
    showsCalls: showsCalls || [NAME, NINE].some((mark) => text?.includes(mark)),
    showsResults,
    needsName: chat.hasName,
    reasoning,
    joinsContent:
      reasoning !== 'part' &&
      !withContent(reasoningFields(reasoning, T), both) &&
      withContent(joined, emptyContent),
    renderResult: (content) => render({ ...chat, result: content }),
  };
}

function callMessage({ arguments: args, content, id, fields }: Chat): ProbeMessage {
  const call = { id, type: 'function', function: { name: NAME, arguments: args } };
  return {
    role: 'assistant',
    ...(content === undefined ? {} : { content }),
    ...fields,
    tool_calls: [call],
  };
}

type Best = { readonly chat: Chat; readonly text: string | null };

/** Returns the first chat of which the template shows the most. */
function bestChat(render: (chat: Chat) => string | null): Best {
  let best: Best | null = null;
  let most = -1;
  for (const hasName of [false, true])
    for (const result of [R, [textPart(R)]])
      for (const args of [OBJECT, TEXT])
        for (const content of EMPTY_CONTENTS) {
          const chat: Chat = { arguments: args, content, result, id: NINE, hasName };
          const text = render(chat);
          const shown = scoreOf(text, args);
          if (shown > most) [best, most] = [{ chat, text }, shown];
          if (most === BEST_SCORE) return best!;
        }
  return best!;
}

const BEST_SCORE = 7;

function scoreOf(text: string | null, args: unknown): number {
  if (text === null) return 0;
  const isPython = typeof args === 'object' && text.includes(`'probe': '${V}'`); // printed, where JSON is meant
  return 1 + (showsOnce(text, R) ? 3 : 0) + (text.includes(V) ? 2 : 0) + (isPython ? 0 : 1);
}

/** Returns the value with the shortest rendered text. `render` returns null for a value that the template does not take. */
function shortest<Value>(
  values: readonly [Value, ...Value[]],
  render: (value: Value) => string | null,
): Value {
  let found = values[0];
  let least = Number.POSITIVE_INFINITY;
  for (const value of values) {
    const length = render(value)?.length ?? Number.POSITIVE_INFINITY;
    if (length < least) [found, least] = [value, length];
  }
  return found;
}

const FORMS: readonly ReasoningForm[] = ['fields', 'thinking', 'part'];
/** Variables without which some templates show no reasoning. */
const SWITCHES = { enable_thinking: true, thinking: true };

function findReasoning(
  chat: Chat,
  shows: (chat: Chat, kwargs: Readonly<Record<string, unknown>>) => boolean,
): ReasoningForm {
  for (const kwargs of [{}, SWITCHES])
    for (const form of FORMS) if (shows({ ...chat, fields: reasoningFields(form, T) }, kwargs)) return form;
  return 'fields';
}

/** Returns the fields of a message with reasoning and no content. */
function reasoningFields(form: ReasoningForm, text: string): ProbeMessage {
  if (form === 'part') return { content: [{ type: 'thinking', thinking: text }] };
  const fields = { reasoning: text, reasoning_content: text };
  return form === 'thinking' ? { ...fields, thinking: text } : fields;
}

function thinkingContent(text: string): readonly unknown[] {
  return [{ type: 'thinking', thinking: T }, textPart(text)];
}

function idForm(text: string, takesLong: boolean): IdForm {
  if (!takesLong) return 'nine';
  const isInBoth = countOf(text, NINE) > 1; // the call and its result
  return isInBoth && !text.includes(NAME) ? 'named' : 'any';
}

/** Returns true if a template fails without ids, or writes `None` for a missing one. */
function needsId(withIds: string | null, without: string | null): boolean {
  if (withIds === null) return false;
  return without === null || countOf(without, 'None') > countOf(withIds, 'None');
}
