/** Answered requests -> conversations. Each sampled choice is trained in one of them, and is context in the others. */
import { createHash } from 'node:crypto';
import type {
  AssistantMessage,
  History,
  Message,
  MessageOrChoice,
  ToolMessage,
  TrajectoryChoice,
} from '../protocol/index.ts';
import type { Exchange } from './exchange.ts';

/** A choice, and the conversation before it. */
type Turn = {
  readonly choice: TrajectoryChoice;
  readonly messages: readonly Message[];
  readonly tools: Exchange['tools'];
  /** By index of `messages`: the turn that an assistant's message repeats. */
  readonly repeated: ReadonlyMap<number, Turn>;
};

/**
 * The conversations, in the order in which their last turns began. A request continues another one if its messages begin
 * with those of the other and its answer, and its tools are the same.
 */
export function historiesOf(exchanges: readonly Exchange[]): History[] {
  const byKey = new Map<string, Turn>();
  const turns: Turn[] = [];
  const continued = new Set<Turn>();
  for (const { messages, tools, choices } of exchanges) {
    const repeated = new Map<number, Turn>();
    let key = digest('', { tools });
    for (const [index, message] of messages.entries()) {
      key = digest(key, comparable(message));
      const turn = byKey.get(key);
      if (!turn) continue;
      repeated.set(index, turn);
      continued.add(turn);
    }
    for (const choice of choices) {
      const turn = { choice, messages, tools, repeated };
      byKey.set(digest(key, comparable(choice.message)), turn);
      turns.push(turn);
    }
  }
  const taken = new Set<TrajectoryChoice>();
  return turns
    .filter((turn) => !continued.has(turn))
    .map((turn) => ({ messages_and_choices: entriesOf(turn, taken), tools: turn.tools }));
}

/** The conversation up to a turn. Choices that an earlier conversation took are messages here. */
function entriesOf(
  { choice, messages, repeated }: Turn,
  taken: Set<TrajectoryChoice>,
): readonly MessageOrChoice[] {
  const take = (one: TrajectoryChoice, otherwise: Message | null): MessageOrChoice => {
    if (otherwise && taken.has(one)) return otherwise;
    taken.add(one);
    return one;
  };
  const before = messages.map((message, index) => {
    const turn = repeated.get(index);
    return turn ? take(turn.choice, message) : message;
  });
  return [...before, take(choice, null)];
}

function digest(before: string, value: unknown): string {
  return createHash('sha256').update(before).update(JSON.stringify(value)).digest('base64');
}

/** What says the same in every spelling that clients use: text parts are their text, ids of calls and reasoning are left out. */
function comparable({ role, content, ...rest }: Message | TrajectoryChoice['message']): unknown {
  const { tool_calls, tool_call_id, function_call } = rest as Pick<
    AssistantMessage,
    'tool_calls' | 'function_call'
  > &
    Pick<ToolMessage, 'tool_call_id'>;
  const calls = (tool_calls ?? []).map((call) =>
    call.type === 'custom'
      ? [call.custom.name, call.custom.input ?? '']
      : [call.function.name, json(call.function.arguments)],
  );
  if (function_call) calls.push([function_call.name, json(function_call.arguments)]);
  if (role === 'assistant') return [role, textOf(content), calls];
  return [role, textOf(content), tool_call_id ?? null];
}

/** A content's text; its parts where it has more than text. */
function textOf(content: unknown): unknown {
  if (!Array.isArray(content)) return content ?? '';
  const isText = content.every((part: { type?: unknown }) => part.type === 'text');
  return isText ? content.map(({ text }: { text?: string }) => text ?? '').join('') : content;
}

/** Arguments of a call, read if they are JSON: clients write them again in their own way. */
function json(text: unknown): unknown {
  if (typeof text !== 'string') return text ?? null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
