/** The turns of a conversation, as the page keeps them -> the messages of a request. */
import type { ChatCompletionRequest, FinishReason } from '../../protocol/index.ts';

/** A turn of the user. */
export type UserTurn = {
  readonly role: 'user';
  readonly text: string;
  /** Data URIs. */
  readonly images: readonly string[];
};

/** A call of a tool, with its result once there is one. */
export type ShownCall = {
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
  result: string | null;
  /** True while a tool of the page runs. */
  isRunning?: boolean;
};

/** Tokens and times of an answer. Milliseconds count from the request. */
export type AnswerTimings = {
  /** The time until its first text. Null if there was none. */
  firstMs: number | null;
  totalMs: number;
  promptTokens: number | null;
  cachedTokens: number | null;
  tokens: number | null;
  /** The rate that the server measured. Absent in conversations that were kept from before. */
  tokensPerSecond?: number;
};

/** A turn of the model, which may still grow. */
export type AssistantTurn = {
  readonly role: 'assistant';
  text: string;
  reasoning: string;
  /** Milliseconds that the reasoning took. Null while it runs. */
  reasoningMs: number | null;
  calls: ShownCall[];
  model: string | null;
  /** Null while it comes, or if it was stopped or failed. */
  finish: FinishReason | null;
  /** The reason why it ended early. Null if it did not. */
  problem: string | null;
  timings: AnswerTimings | null;
};

export type Turn = UserTurn | AssistantTurn;

export function newAnswer(): AssistantTurn {
  return {
    role: 'assistant',
    text: '',
    reasoning: '',
    reasoningMs: null,
    calls: [],
    model: null,
    finish: null,
    problem: null,
    timings: null,
  };
}

type Messages = ChatCompletionRequest['messages'];

/** Returns the messages of turns, behind a system message unless it is empty. Answers without any text are left out. */
export function toMessages(turns: readonly Turn[], system = ''): Messages {
  const messages: Messages = turns.flatMap((turn) =>
    turn.role === 'user' ? userMessage(turn) : assistantMessages(turn),
  );
  return system.trim() === '' ? messages : [{ role: 'system', content: system }, ...messages];
}

function userMessage({ text, images }: UserTurn): Messages {
  if (images.length === 0) return [{ role: 'user', content: text }];
  const parts = images.map((url) => ({ type: 'image_url' as const, image_url: { url } }));
  return [{ role: 'user', content: [...parts, { type: 'text', text }] }];
}

function assistantMessages({ text, reasoning, calls }: AssistantTurn): Messages {
  const answered = calls.filter(({ result }) => result !== null);
  if (text === '' && answered.length === 0) return [];
  return [
    {
      role: 'assistant',
      content: text,
      ...(reasoning === '' ? {} : { reasoning }),
      ...(answered.length === 0 ? {} : { tool_calls: answered.map(toolCall) }),
    },
    ...answered.map(({ id, result }) => ({ role: 'tool' as const, tool_call_id: id, content: result })),
  ];
}

function toolCall({ id, name, arguments: text }: ShownCall) {
  return { id, type: 'function' as const, function: { name, arguments: text } };
}
