/** Validation of models and checkpoints: any input -> a valid request with its defaults, or one error that lists every fault. */
import { fault, throwFaults } from './faults.ts';
import type {
  CheckpointDeleteRequest,
  DetokenizeRequest,
  ModelExportRequest,
  TokenizeRequest,
} from './generated/request-types.ts';
import type { TrainingJobStatus } from './resources.ts';
import type { ValidAdapter } from './valid-chat-request.ts';
import { checkRequest, readingInput, type ValidationOptions } from './validate.ts';

/** A valid request to create a model. */
export type ValidModelCreateRequest = {
  readonly base_model: string;
  readonly name: string | null;
  readonly return_existing: boolean;
};

/** A valid request to write a model. */
export type ValidModelExport = {
  readonly model: string;
  readonly adapters: readonly ValidAdapter[];
  readonly to: string;
  readonly format: NonNullable<ModelExportRequest['format']>;
  /** Null: weights keep their types. */
  readonly type: NonNullable<ModelExportRequest['type']> | null;
  readonly overwrite: boolean;
};

/** A valid question for a page of a list. */
export type ValidListQuery = {
  readonly after: string | null;
  readonly limit: number;
  readonly order: 'asc' | 'desc';
};

/** A valid question for a page of the training jobs. */
export type ValidJobListQuery = ValidListQuery & {
  readonly model_id: string | null;
  readonly status: TrainingJobStatus | null;
};

/** Checks the request for a new model. Throws `INVALID_REQUEST` with all faults. */
export function validateModelCreateRequest(
  input: unknown,
  options: ValidationOptions = {},
): ValidModelCreateRequest {
  const request = checkRequest('ModelCreateRequest', input, options);
  const { base_model, name, return_existing } = request;
  return { base_model, name: name ?? null, return_existing: return_existing ?? false };
}

/** Checks what is to be written where. Throws `INVALID_REQUEST` with all faults. */
export function validateModelExport(input: unknown): ValidModelExport {
  const request = checkRequest('ModelExportRequest', input, {});
  const { model, to, format = 'gguf', type = null, overwrite } = request;
  const given = request.adapters ?? [];
  throwFaults(
    given.flatMap(({ model, file }, i) =>
      ((model ?? null) === null) === ((file ?? null) === null)
        ? [fault(['adapters', String(i)], 'conflict', 'either model or file', { model, file })]
        : [],
    ),
  );
  if (format === 'peft' && type !== null)
    throwFaults([fault(['type'], 'conflict', 'null: the factors of a PEFT folder are float32', type)]);
  if (format === 'safetensors' && type !== null && !['f32', 'bf16', 'f16'].includes(type))
    throwFaults([fault(['type'], 'conflict', 'f32, bf16 or f16, as safetensors has them', type)]);
  const adapters = given.map(({ model, file, scale }) => ({
    model: model ?? null,
    file: file ?? null,
    scale: scale ?? 1,
  }));
  return { model, adapters, to, format, type, overwrite: overwrite ?? false };
}

/** Checks which checkpoints are to be deleted. Throws `INVALID_REQUEST` with all faults. */
export function validateCheckpointDeleteRequest(
  input: unknown,
  options: ValidationOptions = {},
): CheckpointDeleteRequest {
  return checkRequest('CheckpointDeleteRequest', input, options);
}

/** Checks a text for the tokenizer, with its options. Throws `INVALID_REQUEST` with all faults. */
export function validateTokenizeRequest(text: unknown, options: unknown = {}): TokenizeRequest {
  return checkRequest('TokenizeRequest', withArgument('text', text, options), {});
}

/** Checks token ids for the tokenizer, with their options. Throws `INVALID_REQUEST` with all faults. */
export function validateDetokenizeRequest(ids: unknown, options: unknown = {}): DetokenizeRequest {
  return checkRequest('DetokenizeRequest', withArgument('ids', ids, options), {});
}

/** A method's first argument among its options. */
function withArgument(name: string, value: unknown, options: unknown): unknown {
  if (typeof options !== 'object' || options === null)
    throwFaults([fault(['options'], 'type', 'an object', options)]);
  return { ...readingInput(options, () => ({ ...(options as object) })), [name]: value };
}

/** Checks which page of a list is wanted; nothing at all is the first page. Throws `INVALID_REQUEST` with all faults. */
export function validateListQuery(input: unknown, options: ValidationOptions = {}): ValidListQuery {
  const { after, limit, order } = checkRequest('ListQuery', input ?? {}, options);
  return { after: after ?? null, limit: limit ?? 20, order: order ?? 'desc' };
}

/** Checks which page of the training jobs is wanted. Throws `INVALID_REQUEST` with all faults. */
export function validateJobListQuery(input: unknown, options: ValidationOptions = {}): ValidJobListQuery {
  const { after, limit, order, model_id, status } = checkRequest('JobListQuery', input ?? {}, options);
  return {
    after: after ?? null,
    limit: limit ?? 20,
    order: order ?? 'desc',
    model_id: model_id?.toLowerCase() ?? null,
    status: status ?? null,
  };
}
