/** An item of the input -> a row: a request with its id, hash and seed, or a line that is none. */
import { hash } from 'node:crypto';
import { isObject, seedOf } from '../common/index.ts';
import { messageOf, OnpolicyError } from '../errors.ts';
import { type BatchUrl, type Complete, fault, throwFaults } from '../protocol/index.ts';
import type { SourceItem } from './source.ts';
import { isBatchUrl, isSampled, urlFault, urlOf } from './urls.ts';

/** Bytes of a text that rows are ordered by. */
const MOST_KEY = 64 * 1024;

/** What is the same for each row of a run. */
export type RowSettings = Pick<Complete['BatchOptions'], 'url' | 'model' | 'seed' | 'toRequest'>;

/** What the lines of a row have. */
export type RowPlace = {
  readonly line: number;
  readonly bytes: number;
  /** 16 hexadecimal digits: of what it asks for, and of its id. */
  readonly hash: string;
  readonly customId: string | null;
};

/** A row that can be asked for. */
export type Row = RowPlace & {
  readonly customId: string;
  readonly url: BatchUrl;
  readonly body: Readonly<Record<string, unknown>>;
  /** Hash of the request, where equal requests have equal answers; null: each is sampled anew. */
  readonly sameAs: string | null;
};

/** A line that is no request. */
export type FaultyRow = RowPlace & { readonly error: OnpolicyError };

/** Reads an item. Never throws: a fault is the row's own. */
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
    if (typeof given === 'string') given = parse(given);
    // The index of a row, not its line: blank lines count in a file only.
    if (settings.toRequest) given = await settings.toRequest(given as never, line - 1);
    if (!isObject(given)) throwFaults([fault(['row'], 'type', 'an object', given)]);
    const { custom_id, method, url, body } = given as Record<string, unknown>;
    if (custom_id != null && (typeof custom_id !== 'string' || custom_id === ''))
      throwFaults([fault(['custom_id'], 'type', 'a text that is not empty', custom_id)]);
    customId = (custom_id as string | null | undefined) ?? `row-${line}`;
    const isWrapped = body !== undefined;
    if (method !== undefined && isWrapped && method !== 'POST')
      throwFaults([fault(['method'], 'value', 'POST', method)]);
    if (isWrapped && !isObject(body)) throwFaults([fault(['body'], 'type', 'an object', body)]);
    const { custom_id: _, ...bare } = given as Record<string, unknown>;
    const plain = (isWrapped ? body : bare) as Record<string, unknown>;
    const to = (isWrapped ? url : undefined) ?? settings.url ?? urlOf(plain);
    if (!isBatchUrl(to)) throw urlFault(to);
    if (plain['stream'] === true)
      throwFaults([fault(['body', 'stream'], 'value', 'false: a row has one answer', true)]);
    return toRequest({ ...place(), customId }, to, plain, settings);
  } catch (error) {
    const known = error instanceof OnpolicyError ? error : invalid(`toRequest failed: ${messageOf(error)}`);
    return { ...place(), error: known };
  }
}

/** A request that is complete: its model, and a seed where it is sampled. */
function toRequest(
  place: RowPlace & { readonly customId: string },
  url: BatchUrl,
  given: Readonly<Record<string, unknown>>,
  { model, seed }: RowSettings,
): Row {
  const named = model === null || given['model'] != null ? given : extended(given, { model });
  const isDrawn = isSampled(url) && given['temperature'] !== 0;
  const isSeeded = given['seed'] != null && given['seed'] !== -1;
  const takesSeed = isSampled(url) && !isSeeded;
  // Nobody comes back for stored responses by their ids: they would only drop others'.
  const kept = url === '/v1/responses' ? { store: false, ...named } : named;
  const body = takesSeed ? extended(kept, { seed: seedOf(seed, place.customId) }) : kept;
  const isRepeatable = !isDrawn || isSeeded;
  return { ...place, url, body, sameAs: isRepeatable ? hashOf(url + JSON.stringify(named)) : null };
}

/** A copy with more fields. A spread with fields behind it makes an object that is slow to validate. */
function extended(body: Row['body'], more: object): Row['body'] {
  return Object.assign({}, body, more);
}

/** What rows with the same beginning have in common: they are ordered by it. */
export type RowOrder = {
  /** All but the last message. */
  readonly beginning: string;
  readonly rest: string;
  /** Steps of a power of two of the tokens that may be answered. */
  readonly length: number;
};

/** Where a row belongs among others. */
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
    return ''; // in a circle: it cannot be sent either
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
