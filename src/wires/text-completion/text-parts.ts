/** Parts of a chat's answer to one prompt -> text, log-probabilities and ids as a text completion shows them. */
import type { TokenPrompt } from '../../answer/index.ts';
import type {
  FinishReason,
  GivenPrompt,
  PromptLogprobs,
  TextLogprobs,
  TokenLogprob,
  ValidTextCompletionRequest,
} from '../../protocol/index.ts';
import { type Tokenizer, textBytes } from '../../tokenizer/index.ts';
import { addAnswer, addPrompt, fewerScores, noLogprobs, type TextOffsets } from './logprobs.ts';
import { type Echo, echoOf } from './prompts.ts';

/** The request, and the prompt that is continued. */
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

/** Where the new text stands. */
type Place = { readonly offsets: TextOffsets; readonly previous: number; readonly isFirst: boolean };

const NO_SHOWN: ReadonlySet<number> = new Set();
const decoder = new TextDecoder();

/** What one prompt and its answers become. */
export class TextParts {
  readonly #context: PartsContext;
  readonly #promptIds: readonly number[];
  readonly #scores: readonly (PromptLogprobs | null)[];
  readonly #echo: Echo | null;

  /** @param promptIds the tokens that were read; @param scores their log-probabilities, empty where nobody asked for them */
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

  /** Nothing is written. */
  get isEmpty(): boolean {
    return this.#context.request.isEmpty;
  }

  /** Null unless `return_token_ids`. */
  get shownPromptIds(): number[] | null {
    return this.#context.request.returnTokenIds ? [...this.#promptIds] : null;
  }

  /** Null unless `prompt_logprobs`. */
  get shownPromptScores(): (PromptLogprobs | null)[] | null {
    const most = this.#context.request.promptLogprobs;
    return most === null ? null : fewerScores(this.#scores, this.#promptIds, most);
  }

  /** There are no calls in a text. */
  finishOf<Reason extends FinishReason | null>(reason: Reason): 'stop' | 'length' | Extract<Reason, null> {
    if (reason === null) return null as Extract<Reason, null>;
    return this.isEmpty || reason === 'length' ? 'length' : 'stop';
  }

  /** New text, behind the prompt where it is the first and the request wants an echo. */
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

  /** The bytes of each token in the text. */
  #bytesOf(ids: readonly number[], previous: number): Uint8Array[] {
    const { tokenizer, request } = this.#context;
    const { skip_special_tokens: skipSpecial, spaces_between_special_tokens: spacesBetween } = request.chat;
    const specials = { skipSpecial, spacesBetween, shownSpecials: NO_SHOWN };
    return ids.map((id, i) => textBytes(tokenizer, id, ids[i - 1] ?? previous, specials));
  }
}
