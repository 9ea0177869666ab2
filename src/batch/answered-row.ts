/** A row and its answer or error -> its line, in OpenAI's form. */
import type { OnpolicyError } from '../errors.ts';
import type { BatchRow, BatchUrl } from '../protocol/index.ts';
import { type ErrorForm, toErrorBody } from '../wires/index.ts';
import type { Row, RowPlace } from './row.ts';

/** The id of a row's request: the same in every run. */
export function requestIdOf({ hash }: RowPlace): string {
  return `batch_req_${hash}`;
}

export function answeredRow(row: Row, body: object): BatchRow {
  const id = requestIdOf(row);
  const response = { status_code: 200, request_id: id, body };
  return { id, custom_id: row.customId, response, error: null };
}

/** The line of a request that was refused or failed. */
export function failedRow(row: Row, error: OnpolicyError): BatchRow {
  const id = requestIdOf(row);
  const { status, body } = toErrorBody(error, formOf(row.url));
  const response = { status_code: status, request_id: id, body };
  return { id, custom_id: row.customId, line: row.line, response, error: null };
}

/** The line of what is no request. */
export function faultyRow(place: RowPlace, { code, message, param }: OnpolicyError): BatchRow {
  const { customId, line } = place;
  const error = { code, message: `line ${line}: ${message}`, param: param ?? null };
  return { id: requestIdOf(place), custom_id: customId, line, response: null, error };
}

/** The answer of an equal row, as this row's own: with its id. */
export function sharedBody(body: object, from: Row, to: Row): object {
  const { id } = body as { id?: unknown };
  if (typeof id !== 'string') return body;
  return { ...body, id: id.replace(requestIdOf(from), requestIdOf(to)) };
}

function formOf(url: BatchUrl): ErrorForm {
  return url === '/v1/messages' ? 'messages' : 'completion';
}
