/** The contract of a service: its methods, streams, training runs and remote jobs. A runtime, a client and a pool fulfil it. */
export * from './find-method.ts';
export { JoinedMessage } from './joined-message.ts';
export type { CallArguments, Method } from './method.ts';
export * from './methods.ts';
export { readAnswer } from './read-answer.ts';
export * from './remote-job.ts';
export * from './reports.ts';
export * from './service.ts';
export * from './streams.ts';
export { PREVIEW } from './training-methods.ts';
export * from './training-run.ts';
export { type StreamedCompletion, WholeAnswer } from './whole-answer.ts';
