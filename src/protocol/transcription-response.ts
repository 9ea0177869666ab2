/** Answers to transcription requests. The OpenAI client's types accept them. */

/** The transcript of a sound. */
export interface Transcription {
  text: string;
  usage: TranscriptionUsage;
  /** `length`: the answer reached the limit of its tokens or the end of the context, and the speech continues. */
  finish_reason: 'stop' | 'length';
  /** Tokens of the transcript. Only with `include: ['logprobs']`. */
  logprobs?: TranscriptionToken[];
}

/** One token of a transcript. */
export interface TranscriptionToken {
  token: string;
  logprob: number;
  /** UTF-8 bytes of the token, which may be part of a character. */
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

/** An event of a streamed transcript. */
export type TranscriptionEvent =
  | { type: 'transcript.text.delta'; delta: string }
  | ({ type: 'transcript.text.done' } & Omit<Transcription, 'logprobs'>);
