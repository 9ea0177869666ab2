/** The `logits_processors` of a request -> hooks that edit its rows. Names refer to processors that the host has registered. */
import { type ErrorDetail, errorAt, messageOf, OnpolicyError } from '../errors.ts';
import type { LogitsProcessor, ValidChatRequest, ValidLogitsProcessor } from '../protocol/index.ts';
import { closestName, fault, throwFaults } from '../protocol/index.ts';
import { LogitsHook } from './logits-hook.ts';

/** Facts about a choice, for the factory of its processor. */
export type LogitsProcessorOptions = {
  /** `args` of `{ qualname, args, kwargs }`; empty for a bare name. */
  readonly args: readonly unknown[];
  /** `kwargs` of `{ qualname, args, kwargs }`; empty for a bare name. */
  readonly kwargs: Readonly<Record<string, unknown>>;
  /** `inference_xargs` of the request. */
  readonly inferenceXargs: Readonly<Record<string, string | number | readonly (string | number)[]>>;
  /** Length of a row of logits. */
  readonly vocabSize: number;
};

/** Creates the processor of one choice. Each choice has separate state. */
export type LogitsProcessorFactory = (options: LogitsProcessorOptions) => LogitsProcessor;

const factories = new Map<string, LogitsProcessorFactory>();

/**
 * Registers a logits processor under a name, which requests can use in `logits_processors`. An existing name is replaced for later
 * requests.
 *
 * ```ts
 * registerLogitsProcessor('forbid', ({ args }) => (outputIds: Int32Array, logits: Float32Array) => {
 *   for (const id of args) logits[id as number] = -Infinity;
 * });
 * await createCompletion({ messages, logits_processors: [{ qualname: 'forbid', args: [17] }] });
 * ```
 * @throws OnpolicyError `INVALID_REQUEST` for an empty name, or a factory that is not a function
 */
export function registerLogitsProcessor(name: string, factory: LogitsProcessorFactory): void {
  if (typeof name !== 'string' || name === '')
    throw errorAt('name', 'INVALID_REQUEST', 'expected a non-empty string');
  if (typeof factory !== 'function')
    throw errorAt('factory', 'INVALID_REQUEST', 'expected a function that returns a processor');
  factories.set(name, factory);
}

/** Returns one hook per choice. Empty if the request has no processors. */
export function createLogitsHooks(
  request: ValidChatRequest,
  prompt: Int32Array,
  vocabSize: number,
): LogitsHook[] {
  const items = request.logits_processors;
  if (items.length === 0) return [];
  refuseUnknown(items);
  return Array.from({ length: request.n }, () => {
    const processors = items.map((item, index) => create(item, index, request, vocabSize));
    return new LogitsHook(processors, prompt, vocabSize);
  });
}

function refuseUnknown(items: readonly ValidLogitsProcessor[]): void {
  const faults: ErrorDetail[] = items.flatMap((item, index) => {
    const name = nameOf(item);
    if (name === null || factories.has(name)) return [];
    const near = closestName(name, [...factories.keys()]);
    const expected = `a name that registerLogitsProcessor was called with${near === null ? '' : `, like ${JSON.stringify(near)}`}`;
    return [fault(['logits_processors', String(index)], 'value', expected, name)];
  });
  throwFaults(faults);
}

function create(
  item: ValidLogitsProcessor,
  index: number,
  request: ValidChatRequest,
  vocabSize: number,
): LogitsProcessor {
  const name = nameOf(item);
  if (name === null) return item as LogitsProcessor;
  const { args, kwargs } = typeof item === 'object' ? item : { args: [], kwargs: {} };
  const fail = (reason: string, cause: unknown): OnpolicyError =>
    new OnpolicyError('INVALID_REQUEST', `logits_processors.${index}: ${name} ${reason}`, {
      cause,
      param: 'logits_processors',
    });
  let processor: unknown;
  try {
    processor = factories.get(name)!({ args, kwargs, inferenceXargs: request.inference_xargs, vocabSize });
  } catch (cause) {
    throw fail(`failed: ${messageOf(cause)}`, cause);
  }
  if (typeof processor !== 'function') throw fail('made no function', processor);
  return processor as LogitsProcessor;
}

function nameOf(item: ValidLogitsProcessor): string | null {
  if (typeof item === 'function') return null;
  return typeof item === 'string' ? item : item.qualname;
}
