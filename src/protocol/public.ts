/** The types of requests and answers that the package exports. */
export type * from './batch-objects.ts';
export type * from './batch-types.ts';
export type * from './chat-completion-response.ts';
export type * from './embedding-response.ts';
export type * from './generated/request-types.ts';
export type { LogitsProcessor, NextLogits } from './logits-processor.ts';
export type { Pixels } from './media-bytes.ts';
export type * from './messages-response.ts';
export type * from './ollama-response.ts';
export type * from './rank-responses.ts';
export type * from './resources.ts';
export type * from './responses-response.ts';
export type * from './text-completion-response.ts';
export type * from './tokenizer-responses.ts';
export type * from './tracker.ts';
export type * from './transcription-response.ts';
