/** A reference that names no model -> an error with the names that it may have meant. */
import path from 'node:path';
import { errorAt, type OnpolicyError } from '../errors.ts';
import { closestName } from '../protocol/index.ts';

const MAX_SHOWN = 500;
const IS_PATH = /^[.~/\\]|^[a-zA-Z]:[/\\]|\.(gguf|onnx)$/i;
const IS_REPOSITORY = /^[\w.-]+\/[\w.-]+(:[\w.-]+)?$/;

/** Returns the error. `names` are the valid references at this field in addition to a path and a URI. */
export function missingModel(field: string, reference: string, names: readonly string[]): OnpolicyError {
  const others = names.filter((name) => name !== reference); // the default model is named by its own path
  const near = closestName(reference, others);
  const hint = near === null ? '' : `; did you mean ${near}?`;
  const got = `got ${JSON.stringify(reference.slice(0, MAX_SHOWN))}`;
  const reason = (): string => {
    if (IS_PATH.test(reference)) return `no such file: ${path.resolve(reference.slice(0, MAX_SHOWN))}${hint}`;
    if (near !== null) return `no model has this name, ${got}${hint}`;
    if (IS_REPOSITORY.test(reference)) return `no such file, ${got}; did you mean hf:${reference}?`;
    if (reference.includes('/')) return `no such file: ${path.resolve(reference.slice(0, MAX_SHOWN))}`;
    const known = others.length === 0 ? '' : `one of the names ${others.join(', ')}, `;
    return `expected ${known}an hf: URI or a path of a model, ${got}`;
  };
  return errorAt(field, 'MODEL_NOT_FOUND', reason());
}
