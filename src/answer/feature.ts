/** A feature of a request: its actions on each choice, from the first token to the response. */
import type { Sequence, SequenceExtras } from '../engine/index.ts';
import type { SampledRows } from '../engine/native/index.ts';
import type { ChatCompletion, ChatCompletionChoice, Usage } from '../protocol/index.ts';
import type { Choice } from './choice.ts';

/** Actions of a feature on one choice. A beam search calls only `finished` and `report`, because its choices have no sequences. */
export type ChoicePart = {
  /** Options of the choice's sequence when it is created. Options of later features take precedence. */
  readonly extras?: SequenceExtras;
  /**
   * Called before the first token of the choice, and before each further one while it returns true. The choice has read all its text by
   * then.
   */
  beforeNext?(sequence: Sequence): boolean;
  /**
   * Called after each token that does not end the choice, sampled or forced in a row. Returns the sequence that continues the choice in place
   * of this one, which ends, or null.
   */
  follow?(sequence: Sequence, rows: SampledRows, row: number): Sequence | null;
  /** Called when the caller wants the reasoning to end. `beforeNext` is called before the next token, also if it has returned false. */
  endReasoning?(): void;
  /** Called when the choice has ended without an error. */
  finished?(): void;
  /** Returns fields for the choice in the response, or in its last chunk. */
  report?(): Partial<ChatCompletionChoice>;
};

/** Fields of a response other than its choices. */
export type ResponseFields = Partial<Pick<ChatCompletion, 'prompt_logprobs' | 'kv_transfer_params'>>;

/** One feature of one request, ready to run. */
export type Feature = {
  /** Returns the actions on a choice, or null if there are none. */
  part?(choice: Choice): ChoicePart | null;
  /** Work to do after all choices have ended. A response that is not streamed waits for it. */
  finish?(): Promise<void>;
  /** Returns fields of the response. Fields about the prompt are known with the first token of the first choice. */
  fields?(): ResponseFields;
  /** Returns token counts for the usage. */
  usage?(): Partial<NonNullable<Usage['completion_tokens_details']>>;
};
