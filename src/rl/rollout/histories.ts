/** Answered requests -> conversations. Each sampled choice is trained in one of them, and is context in the others. */
import { parseJson } from '../../common/index.ts';
import type {
  AssistantMessage,
  History,
  Message,
  MessageOrChoice,
  ToolMessage,
  TrajectoryChoice,
} from '../../protocol/index.ts';
import type { Exchange } from './exchange.ts';

/** A common beginning of conversations: a node of the tree of messages. */
type Beginning = {
  /** Continuations, by message object and by comparable content. */
  readonly next: Map<unknown, Beginning>;
  /** Turn whose answer is its last message. Null if there is none. */
  turn: Turn | null;
};

/** A choice, and the conversation before it. */
type Turn = {
  readonly choice: TrajectoryChoice;
  readonly messages: readonly Message[];
  readonly tools: Exchange['tools'];
  /** By index of `messages`: the turn that an assistant's message repeats. */
  readonly repeated: ReadonlyMap<number, Turn>;
};

/**
 * Returns the conversations, in the order in which their last turns began. A request continues another one if its messages begin with those
 * of the other and its answer, and its tools are the same.
 */
export function historiesOf(exchanges: readonly Exchange[]): History[] {
  const empty: Beginning = { next: new Map(), turn: null };
  const turns: Turn[] = [];
  const continued = new Set<Turn>();
  for (const { messages, tools, choices } of exchanges) {
    const repeated = new Map<number, Turn>();
    let begun = follow(empty, { tools });
    for (const [index, message] of messages.entries()) {
      begun = after(begun, message);
      const { turn } = begun;
      if (!turn) continue;
      repeated.set(index, turn);
      continued.add(turn);
    }
    for (const choice of choices) {
      const turn = { choice, messages, tools, repeated };
      after(begun, choice.message).turn = turn;
      turns.push(turn);
    }
  }
  const taken = new Set<TrajectoryChoice>();
  return turns
    .filter((turn) => !continued.has(turn))
    .map((turn) => ({ messages_and_choices: entriesOf(turn, taken), tools: turn.tools }));
}

/** Returns the conversation up to a turn. Choices that belong to an earlier conversation become messages. */
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

/** Returns the beginning with one more message. A message object that was looked up before is not compared again. */
function after(before: Beginning, message: Message | TrajectoryChoice['message']): Beginning {
  const found = before.next.get(message) ?? follow(before, comparable(message));
  before.next.set(message, found);
  return found;
}

function follow({ next }: Beginning, said: unknown): Beginning {
  const text = JSON.stringify(said);
  const found = next.get(text) ?? { next: new Map(), turn: null };
  next.set(text, found);
  return found;
}

/**
 * Returns a value that is equal for all spellings that clients use: text parts are joined to text, and ids of calls and reasoning are left
 * out.
 */
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

/** Returns the text of content, or its parts if it has more than text. */
function textOf(content: unknown): unknown {
  if (!Array.isArray(content)) return content ?? '';
  const isText = content.every((part: { type?: unknown }) => part.type === 'text');
  return isText ? content.map(({ text }: { text?: string }) => text ?? '').join('') : content;
}

/** Parses the arguments of a call if they are JSON, because clients may reformat them. */
function json(text: unknown): unknown {
  return typeof text === 'string' ? parseJson(text, text) : (text ?? null);
}
