/** A form with a sound -> its transcript, as JSON, text or events. */

import type { Readable } from 'node:stream';
import { parseJson } from '../../common/index.ts';
import { errorAt } from '../../errors.ts';
import type { TranscriptionAnswer } from '../../service.ts';
import { transcribe } from '../../wires/index.ts';
import type { RequestContext } from './context.ts';
import { requireModelAndAdapters } from './model-access.ts';
import { answerResponse } from './stream-response.ts';
import { readUpload } from './upload.ts';
import { text, type WireResponse } from './wire.ts';

/** A value, or the text itself, which the check of the request then names. */
const readJson = (text: string): unknown => parseJson(text, text);

/** How the texts of a form become values. What is not here stays a text. */
const READ: Readonly<Record<string, (text: string) => unknown>> = {
  stream: readJson,
  temperature: readJson,
  top_p: readJson,
  seed: readJson,
  max_completion_tokens: readJson,
  timeout_ms: readJson,
  keep_alive: readJson,
  adapters: readJson,
  include: (text) => [text],
  timestamp_granularities: (text) => [text],
};

/** `POST /v1/audio/transcriptions`. */
export async function createTranscription(context: RequestContext): Promise<WireResponse> {
  const { request, settings, service, call, validation } = context;
  const { fields, kept } = await readUpload(request, settings, (bytes) => read(bytes, settings.maxBodyBytes));
  const given = [...fields].map(([field, text]) => {
    const name = field.replace(/\[\]$/, '');
    return [name, READ[name]?.(text) ?? text] as const;
  });
  const body: Readonly<Record<string, unknown>> = { ...Object.fromEntries(given), file: kept };
  await requireModelAndAdapters(context, body);
  const isText = body['response_format'] === 'text';
  const asked = isText ? { ...body, response_format: 'json' } : body; // which says how many tokens it took
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
