/** Any service -> its public methods with checks, HTTP, wires of other APIs, batches. */

export { callChecked, callMethod, hasMethod } from './checked-calls.ts';
export * from './facade.ts';
export { type FittedMessages, fitMessages } from './fit-messages.ts';
export { type Neighbor, nearest, similarity, type Vector } from './nearest.ts';
