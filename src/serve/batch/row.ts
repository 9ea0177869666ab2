/** An item of the input -> a row: a request with its id, hash and seed, or the error of an item that is not a request. */
import { hash } from 'node:crypto';
import { isObject, seedOf } from '../../common/index.ts';
import { type ErrorDetail, messageOf, OnpolicyError } from '../../errors.ts';
import { type BatchUrl, type Complete, closestName, fault, throwFaults } from '../../protocol/index.ts';
import type { SourceItem } from './source.ts';
import { isBatchUrl, isSampled, methodOfUrl, URL_FIELDS, urlFault, urlOf } from './urls.ts';

/** Number of characters of a text that rows are ordered by. */
const MOST_KEY = 64 * 1024;

/** Settings that all rows of a run share. */
export type RowSettings = Pick<
  Complete['BatchOptions'],
  'url' | 'model' | 'seed' | 'toRequest' | 'response_format'
>;

/** Identity of a row: its line, hash and id. */
export type RowPlace = {
  readonly line: number;
  readonly bytes: number;
  /** 16 hexadecimal digits, computed from the row's request and its id. */
  readonly hash: string;
  readonly customId: string | null;
};

/** A row with a valid request. */
export type Row = RowPlace & {
  readonly customId: string;
  readonly url: BatchUrl;
  readonly body: Readonly<Record<string, unknown>>;
  /** Hash of the request if equal requests have equal answers. Null if each request is sampled separately. */
  readonly sameAs: string | null;
};

/** An item that is not a valid request, with its error. */
export type FaultyRow = RowPlace & { readonly error: OnpolicyError };

/** Reads an item. Never throws: an invalid item becomes a row with an error. */
export async function toRow(item: SourceItem, settings: RowSettings): Promise<Row | FaultyRow> {
  const { line, bytes } = item;
  let given: unknown = item.value;
  let customId: string | null = null;
  const place = () => {
    const text = textOf(settings.toRequest ? given : item.value);
    return { line, bytes, customId, hash: hashOf(`${customId ?? line}\n${text}`) };
  };
  try {
    if (item.problem !== null) throw invalid(item.problem);
    if (item.isJson) given = parse(given as string);
    // The index of a row, not its line: blank lines count in a file only.
    if (settings.toRequest) given = await settings.toRequest(given as never, line - 1);
    if (!isObject(given)) throwFaults([fault(['row'], 'type', 'an object', given)]);
    const { custom_id, method, url, body } = given as Record<string, unknown>;
    if (custom_id != null && (typeof custom_id !== 'string' || custom_id === ''))
      throwFaults([fault(['custom_id'], 'type', 'a text that is not empty', custom_id)]);
    customId = (custom_id as string | null | undefined) ?? `row-${line}`;
    const isWrapped = body !== undefined;
    if (isWrapped)
      throwFaults(
        Object.keys(given as object)
          .filter(isForeign)
          .map(unknownField),
      );
    if (method !== undefined && isWrapped && method !== 'POST')
      throwFaults([fault(['method'], 'value', 'POST', method)]);
    if (isWrapped && !isObject(body)) throwFaults([fault(['body'], 'type', 'an object', body)]);
    const { custom_id: _, ...bare } = given as Record<string, unknown>;
    const plain = (isWrapped ? body : bare) as Record<string, unknown>;
    const to = (isWrapped ? url : undefined) ?? settings.url ?? urlOf(plain);
    if (to === undefined) throwFaults(misspelt(plain, isWrapped ? ['body'] : []));
    if (!isBatchUrl(to)) throw urlFault(to);
    if (plain['stream'] === true)
      throwFaults([fault(['body', 'stream'], 'value', 'false: a row has one answer', true)]);
    return toRequest({ ...place(), customId }, to, plain, settings);
  } catch (error) {
    const known = error instanceof OnpolicyError ? error : invalid(`toRequest failed: ${messageOf(error)}`);
    return { ...place(), error: known };
  }
}

/** Fields of a row beside the body of its request. */
const WRAPPER_FIELDS = ['custom_id', 'method', 'url', 'body'];

function isForeign(name: string): boolean {
  return !WRAPPER_FIELDS.includes(name);
}

function unknownField(name: string): ErrorDetail {
  const near = closestName(name, WRAPPER_FIELDS);
  const shown = name.slice(0, 200);
  const hint = near === null ? '' : `; did you mean ${near}?`;
  return { loc: [shown], msg: `${shown}: not a field of a row with a body${hint}`, type: 'unknown_field' };
}

/** Returns the fields that are almost those by which the url of a request is known. */
function misspelt(request: Row['body'], loc: readonly string[]): ErrorDetail[] {
  return Object.keys(request).flatMap((name) => {
    const near = closestName(name, URL_FIELDS);
    if (near === null) return [];
    const path = [...loc, name.slice(0, 200)];
    return [
      {
        loc: path,
        msg: `${path.join('.')}: not a field of a request; did you mean ${near}?`,
        type: 'unknown_field',
      },
    ];
  });
}

/** Completes a request: with the default model, and with a seed if its answer is sampled. */
function toRequest(
  place: RowPlace & { readonly customId: string },
  url: BatchUrl,
  given: Readonly<Record<string, unknown>>,
  { model, seed, response_format: format }: RowSettings,
): Row {
  const isFormed =
    format !== null && methodOfUrl(url) === 'createCompletion' && given['response_format'] == null;
  const formed = isFormed ? extended(given, { response_format: format }) : given;
  const named = model === null || formed['model'] != null ? formed : extended(formed, { model });
  const isDrawn = isSampled(url) && given['temperature'] !== 0;
  const isSeeded = given['seed'] != null && given['seed'] !== -1;
  const takesSeed = isSampled(url) && !isSeeded;
  // Responses of a batch are not stored: the caller gets them in the output, and storing them would evict other responses.
  const kept = methodOfUrl(url) === 'createResponse' ? { store: false, ...named } : named;
  const body = takesSeed ? extended(kept, { seed: seedOf(seed, place.customId) }) : kept;
  const isRepeatable = !isDrawn || isSeeded;
  return { ...place, url, body, sameAs: isRepeatable ? hashOf(url + JSON.stringify(named)) : null };
}

/** Returns a copy with more fields. An object made by a spread with fields behind it is slow to validate. */
function extended(body: Row['body'], more: object): Row['body'] {
  return Object.assign({}, body, more);
}

/** Sort key of a row: rows with the same beginning are asked for one after the other. */
export type RowOrder = {
  /** JSON of the request without its last message. */
  readonly beginning: string;
  readonly rest: string;
  /** Binary logarithm of the most answer tokens, rounded down; 32 if the request does not limit them. */
  readonly length: number;
};

/** Returns the sort key of a row. */
export function orderOf({ url, body }: Row): RowOrder {
  const { model, tools, system, instructions, messages, prompt, input, query, text_1 } = body;
  const asked = messages ?? prompt ?? input ?? query ?? text_1;
  const parts = Array.isArray(asked) && isObject(asked[0]) ? asked : [asked];
  const most = body['max_completion_tokens'] ?? body['max_tokens'] ?? body['max_output_tokens'];
  const text = (value: unknown): string => (JSON.stringify(value) ?? '').slice(0, MOST_KEY);
  return {
    beginning: text([url, model, tools, system, instructions, parts.slice(0, -1)]),
    rest: text(parts.at(-1)),
    length: typeof most === 'number' && most > 0 ? Math.floor(Math.log2(most)) : 32,
  };
}

export function hashOf(text: string): string {
  return hash('sha256', text).slice(0, 16);
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return ''; // a circular value cannot be sent either
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(`the line is not JSON: ${messageOf(error).slice(0, 200)}`);
  }
}

function invalid(message: string): OnpolicyError {
  return new OnpolicyError('INVALID_REQUEST', message);
}
