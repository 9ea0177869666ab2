/** Validation of models and checkpoints: any input -> a valid request with its defaults, or one error that lists every fault. */
import { fault, throwFaults } from './faults.ts';
import { fills } from './generated/fills.ts';
import type { DetokenizeRequest, TokenizeRequest } from './generated/request-types.ts';
import { adapterFaults } from './rules/adapters.ts';
import type { ValidAdapter } from './valid-chat-request.ts';
import { type Complete, checkRequest, readingInput, type ValidationOptions } from './validate.ts';

/** A valid request to create a model. */
export type ValidModelCreateRequest = Complete['ModelCreateRequest'];

/** A valid request to write a model. If `type` is null, weights keep their types. */
export type ValidModelExport = Omit<Complete['ModelExportRequest'], 'adapters'> & {
  readonly adapters: readonly ValidAdapter[];
};

/** A valid request for a page of a list. */
export type ValidListQuery = Complete['ListQuery'];

/** A valid request for a page of the training jobs. */
export type ValidJobListQuery = Complete['JobListQuery'];

/** Checks the request for a new model. Throws `INVALID_REQUEST` with all faults. */
export function checkModelCreateRequest(
  input: unknown,
  options: ValidationOptions = {},
): ValidModelCreateRequest {
  return fills.ModelCreateRequest(checkRequest('ModelCreateRequest', input, options));
}

/** Checks a request to write a model to a file. Throws `INVALID_REQUEST` with all faults. */
export function checkModelExport(input: unknown): ValidModelExport {
  const request = fills.ModelExportRequest(checkRequest('ModelExportRequest', input, {}));
  const { format, type } = request;
  throwFaults(adapterFaults(request.adapters));
  if (request.decisions && format !== 'gguf')
    throwFaults([
      fault(['decisions'], 'conflict', 'false: only GGUF files have entries for decisions', true),
    ]);
  if (format === 'peft' && type !== null)
    throwFaults([fault(['type'], 'conflict', 'null: the factors of a PEFT folder are float32', type)]);
  if (format === 'safetensors' && type !== null && !['f32', 'bf16', 'f16'].includes(type))
    throwFaults([fault(['type'], 'conflict', 'f32, bf16 or f16, as safetensors has them', type)]);
  return { ...request, adapters: (request.adapters ?? []).map(fills.Adapter) };
}

/** Checks a text for the tokenizer, with its options. Throws `INVALID_REQUEST` with all faults. */
export function checkTokenizeRequest(text: unknown, options: unknown = {}): TokenizeRequest {
  return checkRequest('TokenizeRequest', withArgument('text', text, options), {});
}

/** Checks token ids for the tokenizer, with their options. Throws `INVALID_REQUEST` with all faults. */
export function checkDetokenizeRequest(ids: unknown, options: unknown = {}): DetokenizeRequest {
  return checkRequest('DetokenizeRequest', withArgument('ids', ids, options), {});
}

/** Returns the options of a method with its first argument added under a name. */
function withArgument(name: string, value: unknown, options: unknown): unknown {
  if (typeof options !== 'object' || options === null)
    throwFaults([fault(['options'], 'type', 'an object', options)]);
  return { ...readingInput(options, () => ({ ...(options as object) })), [name]: value };
}

/** Checks a request for a page of a list. No input means the first page. Throws `INVALID_REQUEST` with all faults. */
export function checkListQuery(input: unknown, options: ValidationOptions = {}): ValidListQuery {
  return fills.ListQuery(checkRequest('ListQuery', input ?? {}, options));
}

/** Checks a request for a page of the training jobs. Throws `INVALID_REQUEST` with all faults. */
export function checkJobListQuery(input: unknown, options: ValidationOptions = {}): ValidJobListQuery {
  const query = fills.JobListQuery(checkRequest('JobListQuery', input ?? {}, options));
  return { ...query, model_id: query.model_id?.toLowerCase() ?? null };
}
