/** A reference that names nothing -> the error that says what it may have meant. */
import path from 'node:path';
import { errorAt, type OnpolicyError } from '../errors.ts';
import { closestName } from '../protocol/index.ts';

const MAX_SHOWN = 500;
const IS_PATH = /^[.~/\\]|^[a-zA-Z]:[/\\]|\.(gguf|onnx)$/i;
const IS_REPOSITORY = /^[\w.-]+\/[\w.-]+(:[\w.-]+)?$/;

/** `names`: what a reference at this field may be beside a path and a URI. */
export function missingModel(field: string, reference: string, names: readonly string[]): OnpolicyError {
  const near = closestName(reference, names);
  const got = `got ${JSON.stringify(reference.slice(0, MAX_SHOWN))}`;
  const reason = (): string => {
    if (near !== null) return `no model has this name, ${got}; did you mean ${near}?`;
    if (!IS_PATH.test(reference) && IS_REPOSITORY.test(reference))
      return `no such file, ${got}; did you mean hf:${reference}?`;
    if (IS_PATH.test(reference) || reference.includes('/'))
      return `no such file: ${path.resolve(reference.slice(0, MAX_SHOWN))}`;
    const known = names.length === 0 ? '' : `one of the names ${names.join(', ')}, `;
    return `expected ${known}an hf: URI or a path of a model, ${got}`;
  };
  return errorAt(field, 'MODEL_NOT_FOUND', reason());
}
