/** The messages of a decision, and questions -> prompts that share the tokens of the input. */
import { atField } from '../../common/index.ts';
import { errorAt } from '../../errors.ts';
import type { RunningModel } from '../../models/index.ts';
import type { ChatMessage, ValidChatRequest } from '../../protocol/index.ts';
import { templateFor } from '../../template/chat-format/index.ts';
import { isReasoningOpen } from '../../template/reasoning/index.ts';
import { NO_OTHER_FIELDS, type PlacedPart } from '../arrange-messages.ts';
import { savesAtPlaces } from '../open-request.ts';
import { promptText, type TokenPrompt } from '../prompt.ts';
import { promptContext } from '../render-prompt.ts';
import { contentText } from '../template-message.ts';
import { plainMessage } from './plain-text.ts';

/** The text around the questions of a decision. */
export type PromptFrame = {
  /** The rendered input, up to where a question begins. */
  readonly before: string;
  /** The end of the user's message and the beginning of the answer. */
  readonly behind: string;
  /** True if the tokenizer adds its special tokens around the text. */
  readonly addSpecial: boolean;
};

/** Placeholder of a question: a word that no template changes. */
const MARK = 'decisionquestionx';
const BLANK_LINE = '\n\n';
const NONE = new Int32Array(0);
/** Beginning of an answer for models that name the channel of each message (harmony). */
const FINAL_CHANNEL = '<|channel|>final<|message|>';

/**
 * Returns the messages with a question at their end: behind a blank line in the last message if that is the user's, else as a new message.
 */
export function withQuestion(messages: readonly ChatMessage[], parts: readonly PlacedPart[]): ChatMessage[] {
  const last = messages.at(-1);
  if (last?.role !== 'user') return [...messages, { ...NO_OTHER_FIELDS, role: 'user', content: parts }];
  const isEmpty = last.content.every((part) => part.type === 'text' && part.text === '');
  const content = isEmpty ? parts : joined(last.content, parts);
  return [...messages.slice(0, -1), { ...last, content }];
}

function joined(before: readonly PlacedPart[], parts: readonly PlacedPart[]): readonly PlacedPart[] {
  const end = before.at(-1);
  const [start, ...rest] = parts;
  if (end?.type === 'text' && start?.type === 'text')
    return [...before.slice(0, -1), { ...end, text: `${end.text}${BLANK_LINE}${start.text}` }, ...rest];
  return [...before, ...parts];
}

/** Returns the messages of a request without the texts of control tokens. */
export function plainMessages(model: RunningModel, chat: ValidChatRequest): ChatMessage[] {
  return chat.messages.map((message) => plainMessage(message, model.tokenizer));
}

/**
 * Renders the messages once, around a question. Returns null if the template does not show the question exactly once, so that each must be
 * rendered. Fails with `UNSUPPORTED` for a model that reasons before each answer.
 */
export async function frameOf(
  model: RunningModel,
  chat: ValidChatRequest,
  messages: readonly ChatMessage[],
  signal: AbortSignal | undefined,
): Promise<PromptFrame | null> {
  if (model.template === null) {
    const before = messages.map(contentText).filter((text) => text !== '');
    return { before: [...before, ''].join(BLANK_LINE), behind: '', addSpecial: true };
  }
  const text = await renderQuestion(
    model,
    chat,
    withQuestion(messages, [{ type: 'text', text: MARK }]),
    signal,
  );
  const [before, behind, ...others] = text.split(MARK);
  if (before === undefined || behind === undefined || others.length > 0) return null;
  return { before, behind, addSpecial: chat.add_special_tokens };
}

/** Renders messages up to where the answer begins. */
async function renderQuestion(
  model: RunningModel,
  chat: ValidChatRequest,
  messages: readonly ChatMessage[],
  signal: AbortSignal | undefined,
): Promise<string> {
  const template = templateFor(model, chat);
  const { reasoning } = template.format;
  const text = await promptText({ ...chat, messages }, promptContext(model, template, signal));
  if (reasoning?.name === 'harmony' && !text.endsWith(FINAL_CHANNEL)) return text + FINAL_CHANNEL;
  if (reasoning && isReasoningOpen(reasoning, text))
    throw errorAt(
      'model',
      'UNSUPPORTED',
      'this model reasons before each answer, so that no label is its next token',
    );
  return text;
}

/** Renders and encodes messages that include their question. */
export async function wholePrompt(
  model: RunningModel,
  chat: ValidChatRequest,
  messages: readonly ChatMessage[],
  signal: AbortSignal | undefined,
): Promise<TokenPrompt> {
  const text = await renderQuestion(model, chat, messages, signal);
  const special = { addSpecial: chat.add_special_tokens, parseSpecial: true };
  const ids = await atField('messages', () => model.tokenizer.encode(text, special));
  return { field: 'messages', ids, added: NONE };
}

/** Returns both lists as one. Copies them whole, because spreading a long prompt takes far longer. */
export function joinTokens(before: Int32Array, behind: ArrayLike<number>): Int32Array {
  const ids = new Int32Array(before.length + behind.length);
  ids.set(before);
  ids.set(behind, before.length);
  return ids;
}

/**
 * Makes prompts of questions in a frame. A single question is encoded once, with the input. The input is encoded once for all, if encoding it
 * apart from the question gives the same tokens.
 */
export class FramedPrompts {
  readonly #model: RunningModel;
  readonly #frame: PromptFrame;
  readonly #needsPlaces: boolean;
  readonly #isCut: boolean;
  #input: Int32Array | null;
  /** The first question of each kind, and the tokens of its prompt. */
  readonly #firsts = new Map<string, { readonly question: string; readonly whole: Int32Array }>();
  /** True for each kind of question that may be encoded apart from the input. */
  readonly #isApart = new Map<string, boolean>();

  /**
   * @param needsPlaces true if prompts must say where the input ends
   * @param cut tokens of an input that was cut, in place of those of the frame's text; questions follow behind a blank line
   */
  constructor(model: RunningModel, frame: PromptFrame, needsPlaces: boolean, cut: Int32Array | null = null) {
    this.#model = model;
    this.#frame = frame;
    this.#needsPlaces = needsPlaces;
    this.#input = cut;
    this.#isCut = cut !== null;
  }

  /** @param kind questions of one kind have the same form, so that the first one decides how all are encoded */
  async of(kind: string, question: string): Promise<TokenPrompt> {
    if (this.#isCut)
      return await this.#prompt(
        joinTokens(this.#input!, await this.#encode(BLANK_LINE + question + this.#frame.behind, false)),
      );
    const first = this.#firsts.get(kind);
    if (!first) {
      const whole = await this.#whole(question);
      this.#firsts.set(kind, { question, whole });
      return await this.#prompt(whole);
    }
    if (!this.#isApart.has(kind)) {
      const ids = await this.#apart(first.question);
      this.#isApart.set(
        kind,
        ids.length === first.whole.length && ids.every((id, i) => id === first.whole[i]),
      );
    }
    return await this.#prompt(
      this.#isApart.get(kind) ? await this.#apart(question) : await this.#whole(question),
    );
  }

  async #prompt(ids: Int32Array): Promise<TokenPrompt> {
    const places = this.#needsPlaces ? [(await this.#inputIds()).length].filter((place) => place > 0) : [];
    return { field: 'messages', ids, added: NONE, places };
  }

  async #apart(question: string): Promise<Int32Array> {
    return joinTokens(await this.#inputIds(), await this.#encode(question + this.#frame.behind, false));
  }

  async #inputIds(): Promise<Int32Array> {
    this.#input ??= await atField('messages', () => this.#encode(this.#frame.before, this.#frame.addSpecial));
    return this.#input;
  }

  async #whole(question: string): Promise<Int32Array> {
    const { before, behind, addSpecial } = this.#frame;
    try {
      return await this.#encode(before + question + behind, addSpecial);
    } catch (error) {
      await this.#inputIds(); // if the input is the cause, its error names the field
      throw error;
    }
  }

  #encode(text: string, addSpecial: boolean): Promise<Int32Array> {
    return this.#model.tokenizer.encode(text, { addSpecial, parseSpecial: true });
  }
}

/** Returns the most tokens of a prompt by `truncate_prompt_tokens`. Returns null if the request does not set it. */
export function promptLimit(
  { truncate_prompt_tokens: asked }: ValidChatRequest,
  contextSize: number,
): number | null {
  if (asked === null) return null;
  if (asked === -1) return contextSize - 1; // one token is the answer
  if (asked < contextSize) return asked;
  throw errorAt(
    'truncate_prompt_tokens',
    'INVALID_REQUEST',
    `expected less than the ${contextSize} tokens of the context, got ${asked}`,
  );
}

/** Returns prompts in a frame whose input, the last text of the user, lacks its end. `room`: tokens for the input and all before it. */
export async function cutPrompts(
  model: RunningModel,
  frame: PromptFrame | null,
  messages: readonly ChatMessage[],
  room: number,
): Promise<FramedPrompts> {
  const last = messages.at(-1);
  const end = (last?.role === 'user' ? contentText(last) : '') + BLANK_LINE;
  if (end === BLANK_LINE || !frame?.before.endsWith(end))
    throw cutError('UNSUPPORTED', 'only an input that ends with a text of the user can be cut');
  const special = { addSpecial: frame.addSpecial, parseSpecial: true };
  const head = await model.tokenizer.encode(frame.before.slice(0, -end.length), special);
  const text = await model.tokenizer.encode(end.slice(0, -BLANK_LINE.length), {
    ...special,
    addSpecial: false,
  });
  const left = room - BLANK_LINE.length - head.length; // the blank line is at most as many tokens
  if (left < 0)
    throw cutError(
      'INVALID_REQUEST',
      `expected at least ${-left} tokens more: the longest question does not fit`,
    );
  return new FramedPrompts(model, frame, savesAtPlaces(model), joinTokens(head, text.subarray(0, left)));
}

function cutError(code: 'UNSUPPORTED' | 'INVALID_REQUEST', message: string): Error {
  return errorAt('truncate_prompt_tokens', code, message);
}
