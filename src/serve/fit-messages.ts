/** A conversation that may be too long -> the messages of it that fit into the context of a model: its latest turns. */
import { contextUse, fromNative, OnpolicyError } from '../errors.ts';
import {
  type ChatCompletionRequest,
  checkCallOptions,
  fault,
  type Message,
  throwFaults,
} from '../protocol/index.ts';
import type { CallOptions, Completions } from '../protocol/service/index.ts';

/** A conversation that fits. */
export type FittedMessages = {
  /** The messages to send: all system and developer messages, and the latest turns. */
  readonly messages: Message[];
  /** The messages that were left out, oldest first. */
  readonly dropped: Message[];
  /** Tokens of the prompt of `messages`. */
  readonly promptTokens: number;
  /** Most tokens of a prompt and its answer together. */
  readonly contextTokens: number;
};

/** Share of the context that is kept for an answer whose request has no limit. */
const ANSWER_SHARE = 1 / 4;

/**
 * Leaves out the oldest turns of a conversation, so that its prompt and its answer fit. A turn is a user's message with everything up to the
 * next one, so no tool call is parted from its result. System and developer messages, and the last turn, always stay. Room for the answer
 * is what `max_completion_tokens` or `max_tokens` of the request says, otherwise a quarter of the context.
 * @throws OnpolicyError `CONTEXT_OVERFLOW` if the last turn alone does not fit, `UNSUPPORTED` if the service renders no prompts, and as
 * `renderPrompt` does
 */
export async function fitMessages(
  service: Pick<Completions, 'renderPrompt'>,
  request: ChatCompletionRequest,
  options: CallOptions = {},
): Promise<FittedMessages> {
  checkCallOptions(options);
  if (!service.renderPrompt) throw new OnpolicyError('UNSUPPORTED', 'this service renders no prompts');
  if (!Array.isArray(request?.messages))
    throwFaults([fault(['messages'], 'type', 'a list of messages', request?.messages)]);
  const { messages, max_completion_tokens, max_tokens, ...rest } = request;
  const wanted = max_completion_tokens ?? max_tokens ?? null;
  const starts = turnsOf(messages);
  /** Returns the conversation without its first turns, if it fits; the error of one that does not. */
  const without = async (turns: number): Promise<FittedMessages | OnpolicyError> => {
    const from = starts[turns] ?? 0;
    const isKept = ({ role }: Message, i: number): boolean =>
      turns === 0 || i >= from || SYSTEM.includes(role);
    const kept = messages.filter(isKept);
    const dropped = messages.filter((message, i) => !isKept(message, i));
    try {
      const { count, max_model_len } = await service.renderPrompt!(
        { ...rest, stream: false, messages: kept },
        options,
      );
      const room = wanted ?? Math.floor(ANSWER_SHARE * max_model_len);
      if (count + room <= max_model_len)
        return { messages: kept, dropped, promptTokens: count, contextTokens: max_model_len };
      const text = `${count} tokens of the last turn and ${room} of the answer do not fit into a context of ${max_model_len}`;
      return new OnpolicyError('CONTEXT_OVERFLOW', `messages: ${text}`, { param: 'messages' });
    } catch (thrown) {
      const error = fromNative(thrown);
      if (error.code !== 'CONTEXT_OVERFLOW' || !contextUse(error)) throw error;
      return error;
    }
  };
  const whole = await without(0);
  if (!(whole instanceof OnpolicyError)) return whole;
  let [fewest, most] = [1, starts.length - 1]; // turns to leave out: the answer is between the two
  if (most < fewest) throw whole;
  let best = await without(most);
  if (best instanceof OnpolicyError) throw best;
  while (fewest < most) {
    const middle = Math.floor((fewest + most) / 2);
    const tried = await without(middle);
    if (tried instanceof OnpolicyError) fewest = middle + 1;
    else {
      most = middle;
      best = tried;
    }
  }
  return best as FittedMessages;
}

/** Roles of messages that always stay. */
const SYSTEM: readonly string[] = ['system', 'developer'];

/** Returns where each turn begins. What is before the first message of a user belongs to the first turn. */
function turnsOf(messages: readonly Message[]): number[] {
  const starts = messages.flatMap(({ role }, i) => (role === 'user' ? [i] : []));
  return starts.length === 0 ? [0] : [0, ...starts.slice(1)];
}
