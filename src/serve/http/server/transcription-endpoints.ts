/** A form with a sound -> its transcript, as JSON, text or events. */

import type { Readable } from 'node:stream';
import { parseJson } from '../../../common/index.ts';
import { errorAt } from '../../../errors.ts';
import type { TranscriptionAnswer } from '../../../protocol/service/index.ts';
import { transcribe } from '../../wires/index.ts';
import type { RequestContext } from './context.ts';
import { requireModelAndAdapters } from './model-access.ts';
import { answerResponse } from './stream-response.ts';
import { readUpload } from './upload.ts';
import { type ServedResponse, text } from './wire.ts';

/** Form fields whose text is parsed as JSON. A text that is not JSON is kept, and the check of the request reports it. */
const JSON_FIELDS = [
  ...['stream', 'temperature', 'top_p', 'seed', 'max_completion_tokens', 'timeout_ms', 'keep_alive'],
  'adapters',
];
const LISTS = ['include', 'timestamp_granularities'];

/** `POST /v1/audio/transcriptions`. */
export async function createTranscription(context: RequestContext): Promise<ServedResponse> {
  const { request, settings, service, call, validation } = context;
  const { fields, kept } = await readUpload(request, settings, {
    keep: (bytes) => read(bytes, settings.maxBodyBytes),
  });
  const given = [...fields].map(([field, text]): [string, unknown] => {
    const name = field.replace(/\[\]$/, '');
    if (LISTS.includes(name)) return [name, [text]];
    return [name, JSON_FIELDS.includes(name) ? parseJson(text, text) : text];
  });
  const body: Readonly<Record<string, unknown>> = { ...Object.fromEntries(given), file: kept };
  await requireModelAndAdapters(context, body);
  await context.reserve({ ...body, file: null });
  const isText = body['response_format'] === 'text';
  const asked = isText ? { ...body, response_format: 'json' } : body; // a JSON answer has token counts, a text has none
  const answer = (await transcribe(service, asked, call, validation)) as Exclude<TranscriptionAnswer, string>;
  const response = answerResponse(answer, context);
  return isText && 'text' in answer ? text(answer.text) : response;
}

async function read(bytes: Readable, most: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of bytes as AsyncIterable<Uint8Array>) {
    size += part.length;
    if (size > most) throw errorAt('file', 'TOO_LARGE', `expected at most ${most} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts, size);
}
