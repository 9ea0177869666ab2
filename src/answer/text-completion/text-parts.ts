/** Parts of a chat's answer to one prompt -> text, log-probabilities and ids as a text completion shows them. */

import { type Tokenizer, textBytes } from '../../engine/tokenizer/index.ts';
import type {
  FinishReason,
  GivenPrompt,
  PromptLogprobs,
  TextLogprobs,
  TokenLogprob,
  ValidTextCompletionRequest,
} from '../../protocol/index.ts';
import type { TokenPrompt } from '../prompt.ts';
import { addAnswer, addPrompt, fewerScores, noLogprobs, type TextOffsets } from './logprobs.ts';
import { type Echo, echoOf } from './prompts.ts';

/** The request, and the prompt to continue. */
export type PartsContext = {
  readonly request: ValidTextCompletionRequest;
  readonly tokenizer: Tokenizer;
  readonly given: GivenPrompt;
  readonly prompt: TokenPrompt;
};

/** New text of one choice. */
type NewText = {
  readonly text: string;
  readonly entries: readonly TokenLogprob[];
  readonly ids: readonly number[];
};

/** Position of the new text in its choice. */
type Place = { readonly offsets: TextOffsets; readonly previous: number; readonly isFirst: boolean };

const NO_SHOWN: ReadonlySet<number> = new Set();
const decoder = new TextDecoder();

/** Converts a prompt and the answers to it. */
export class TextParts {
  readonly #context: PartsContext;
  readonly #promptIds: readonly number[];
  readonly #scores: readonly (PromptLogprobs | null)[];
  readonly #echo: Echo | null;

  /** @param promptIds the prompt tokens that were computed; @param scores their log-probabilities, empty if not requested */
  constructor(
    context: PartsContext,
    promptIds: readonly number[],
    scores: readonly (PromptLogprobs | null)[],
  ) {
    const { request, given, prompt, tokenizer } = context;
    this.#context = context;
    this.#promptIds = promptIds;
    this.#scores = scores;
    this.#echo = request.echo ? echoOf(given, prompt, promptIds, tokenizer) : null;
  }

  /** True if the request wants no generated text. */
  get isEmpty(): boolean {
    return this.#context.request.isEmpty;
  }

  /** The prompt's ids; null unless the request has `return_token_ids`. */
  get shownPromptIds(): number[] | null {
    return this.#context.request.returnTokenIds ? [...this.#promptIds] : null;
  }

  /** The prompt's log-probabilities; null unless the request has `prompt_logprobs`. */
  get shownPromptScores(): (PromptLogprobs | null)[] | null {
    const most = this.#context.request.promptLogprobs;
    return most === null ? null : fewerScores(this.#scores, this.#promptIds, most);
  }

  /** Converts a finish reason. A text has no calls, so that only `stop` and `length` remain. */
  finishOf<Reason extends FinishReason | null>(reason: Reason): 'stop' | 'length' | Extract<Reason, null> {
    if (reason === null) return null as Extract<Reason, null>;
    return this.isEmpty || reason === 'length' ? 'length' : 'stop';
  }

  /** Returns new text in the form of a text completion. The first text of a choice follows the echoed prompt, if the request wants one. */
  of(
    { text, entries, ids }: NewText,
    { offsets, previous, isFirst }: Place,
  ): { text: string; logprobs: TextLogprobs | null; ids: number[] | null } {
    const { request } = this.#context;
    const echo = isFirst ? this.#echo : null;
    const logprobs = request.logprobs === null ? null : noLogprobs();
    if (logprobs && echo) this.#addPrompt(logprobs, echo, offsets);
    if (logprobs && !request.isEmpty) addAnswer(logprobs, entries, this.#bytesOf(ids, previous), offsets);
    return {
      text: (echo?.text ?? '') + (request.isEmpty ? '' : text),
      logprobs,
      ids: request.returnTokenIds ? (request.isEmpty ? [] : [...ids]) : null,
    };
  }

  #addPrompt(to: TextLogprobs, echo: Echo, offsets: TextOffsets): void {
    const { request, tokenizer } = this.#context;
    const asIds = request.chat.return_tokens_as_token_ids;
    const textOf = (id: number): string => (asIds ? `token_id:${id}` : decoder.decode(tokenizer.bytesOf(id)));
    const show = { most: request.logprobs!, textOf };
    addPrompt(to, this.#promptIds, this.#scores, show, echo.bytes, offsets);
  }

  /** Returns the bytes that each token adds to the text. */
  #bytesOf(ids: readonly number[], previous: number): Uint8Array[] {
    const { tokenizer, request } = this.#context;
    const { skip_special_tokens: skipSpecial, spaces_between_special_tokens: spacesBetween } = request.chat;
    const specials = { skipSpecial, spacesBetween, shownSpecials: NO_SHOWN };
    return ids.map((id, i) => textBytes(tokenizer, id, ids[i - 1] ?? previous, specials));
  }
}
