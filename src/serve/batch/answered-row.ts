/** A row and its answer or error -> its line, in OpenAI's form. */

import type { OnpolicyError } from '../../errors.ts';
import type { BatchRow, BatchUrl } from '../../protocol/index.ts';
import { type ErrorForm, toErrorBody } from '../../protocol/index.ts';
import type { Row, RowPlace } from './row.ts';
import { methodOfUrl } from './urls.ts';

/** Returns the id of a row's request, which is the same in every run. */
export function requestIdOf({ hash }: RowPlace): string {
  return `batch_req_${hash}`;
}

/** The answer of a row, and the fields of its body that had no effect. */
export type RowAnswer = {
  readonly body: object;
  /** The value that the schema of the request read from the answer; undefined without a schema. */
  readonly parsed: unknown;
  readonly ignored: readonly string[];
};

/** Takes what was read in an answer out of it: the line in the output is the answer alone. */
export function toRowAnswer(answer: object, ignored: readonly string[]): RowAnswer {
  const { parsed, ...body } = answer as { parsed?: unknown };
  return { body: 'parsed' in answer ? body : answer, parsed, ignored };
}

/** Gives a reader the value of a row, which does not show in its JSON. */
export function withParsed(row: BatchRow, parsed: unknown): BatchRow {
  return parsed === undefined ? row : Object.defineProperty(row, 'parsed', { value: parsed });
}

export function answeredRow(row: Row, { body, parsed, ignored }: RowAnswer): BatchRow {
  const id = requestIdOf(row);
  const named = ignored.length === 0 ? {} : { ignored_fields: ignored };
  const response = { status_code: 200, request_id: id, body, ...named };
  return withParsed({ id, custom_id: row.customId, response, error: null }, parsed);
}

/** Returns true if a token limit cut an answer, in the form of any API. */
export function isCut(body: object): boolean {
  const { choices, status, incomplete_details, stop_reason } = body as {
    choices?: readonly { finish_reason?: unknown }[];
    status?: unknown;
    incomplete_details?: { reason?: unknown } | null;
    stop_reason?: unknown;
  };
  if (status === 'incomplete') return incomplete_details?.reason === 'max_output_tokens';
  return (
    stop_reason === 'max_tokens' || (choices?.some((choice) => choice.finish_reason === 'length') ?? false)
  );
}

/** The line of a request that was refused or failed. */
export function failedRow(row: Row, error: OnpolicyError): BatchRow {
  const id = requestIdOf(row);
  const { status, body } = toErrorBody(error, formOf(row.url));
  const response = { status_code: status, request_id: id, body };
  return { id, custom_id: row.customId, line: row.line, response, error: null };
}

/** Returns the line of an input item that is not a request. */
export function faultyRow(place: RowPlace, { code, message, param }: OnpolicyError): BatchRow {
  const { customId, line } = place;
  const error = { code, message: `line ${line}: ${message}`, param: param ?? null };
  return { id: requestIdOf(place), custom_id: customId, line, response: null, error };
}

/** Returns the answer of an equal row with the id of this row. */
export function sharedBody(body: object, from: Row, to: Row): object {
  const { id } = body as { id?: unknown };
  if (typeof id !== 'string') return body;
  return { ...body, id: id.replace(requestIdOf(from), requestIdOf(to)) };
}

function formOf(url: BatchUrl): ErrorForm {
  return methodOfUrl(url) === 'createMessage' ? 'messages' : 'completion';
}
