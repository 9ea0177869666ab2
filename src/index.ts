/**
 * Runs a language model inside this process.
 *
 * ```ts
 * import { createCompletion } from 'onpolicy';
 *
 * const answer = await createCompletion({ messages: [{ role: 'user', content: 'What is 2 plus 3?' }] });
 * console.log(answer.choices[0]?.message.content);
 * ```
 * @module
 */
export { createCompletion } from './default-runtime.ts';
export { type ErrorCode, type ErrorDetail, OnpolicyError } from './errors.ts';
export { createRuntime, type Runtime } from './runtime.ts';
