/** What requests for transcripts are answered with. Accepted by the OpenAI client's types. */

/** The transcript of a sound. */
export interface Transcription {
  text: string;
  usage: TranscriptionUsage;
  /** `length`: the answer reached the limit of its tokens or the end of the context, and the speech continues. */
  finish_reason: 'stop' | 'length';
  /** Its tokens; with `include: ['logprobs']`. */
  logprobs?: TranscriptionToken[];
}

/** One token of a transcript. */
export interface TranscriptionToken {
  token: string;
  logprob: number;
  /** In UTF-8: tokens may be parts of characters. */
  bytes: number[];
}

/** Tokens of a request. */
export interface TranscriptionUsage {
  type: 'tokens';
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  input_token_details: { audio_tokens: number; text_tokens: number };
}

/** An event of a transcript that comes in a stream. */
export type TranscriptionEvent =
  | { type: 'transcript.text.delta'; delta: string }
  | ({ type: 'transcript.text.done' } & Omit<Transcription, 'logprobs'>);
