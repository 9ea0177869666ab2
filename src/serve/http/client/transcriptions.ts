/** A request for a transcript -> a form for a server with OpenAI's endpoint of transcripts -> a text, a transcript or events. */

import { parseJson } from '../../../common/index.ts';
import { OnpolicyError } from '../../../errors.ts';
import {
  readSound,
  type Transcription,
  type TranscriptionEvent,
  type TranscriptionRequest,
  type TranscriptionUsage,
} from '../../../protocol/index.ts';
import {
  type CallOptions,
  METHODS,
  type TranscriptionAnswer,
  TranscriptionStream,
} from '../../../protocol/service/index.ts';
import { fromEventStream } from './event-stream.ts';
import { type OpenResponse, type RetryingClient, readAll } from './retrying-client.ts';

/** Codes of servers that lack the endpoint or the model. An error that names a field shows that the endpoint exists. */
const LACKING: readonly string[] = ['MODEL_NOT_FOUND', 'NOT_FOUND', 'UNSUPPORTED'];
/** Options without a size limit, because the server checks the size. */
const ANY_SIZE = { maxBytes: Number.POSITIVE_INFINITY };

/** A transcript or a part of a stream as servers send it: this library's and OpenAI's events, or vLLM's chunks. */
type Sent = {
  readonly type?: string;
  readonly text?: string;
  readonly delta?: string;
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
  readonly usage?: { readonly type?: string } | null;
  readonly finish_reason?: Transcription['finish_reason'];
  readonly logprobs?: Transcription['logprobs'];
};

/** Calls the endpoint. Returns null if the server lacks it, or lacks the model there. */
export async function askTranscription(
  client: RetryingClient,
  request: TranscriptionRequest,
  { signal }: CallOptions,
  headers: Readonly<Record<string, string>>,
): Promise<TranscriptionAnswer | null> {
  const form = new Response(await toForm(request));
  const body = new Uint8Array(await form.arrayBuffer());
  const isStream = request.stream === true;
  const sent = { ...headers, 'content-type': form.headers.get('content-type')! };
  const how = { headers: sent, signal, isRepeatable: true, isStream };
  let open: OpenResponse;
  try {
    open = await client.open({ method: 'POST', path: METHODS.transcribe.http[1], body, ...how });
  } catch (error) {
    if (error instanceof OnpolicyError && LACKING.includes(error.code) && !error.param) return null;
    throw error;
  }
  if (open.response.header('content-type')?.startsWith('text/event-stream'))
    return new TranscriptionStream(eventsOf(fromEventStream<Sent>(open)), () =>
      open.stop(new OnpolicyError('ABORTED', 'the stream was aborted')),
    );
  const whole = toTranscription(await readAll(open));
  if (isStream) return new TranscriptionStream(eventsOf([whole][Symbol.iterator]()), () => {});
  return request.response_format === 'text' ? whole.text : whole;
}

/** Makes a form of the given fields. The file name has the ending of the sound's format, because some servers read the format from it. */
async function toForm(request: TranscriptionRequest): Promise<FormData> {
  const { file, include, adapters, timestamp_granularities: _, ...fields } = request; // `timestamp_granularities` is always empty
  const form = new FormData();
  const bytes = new Uint8Array(await readSound(file, 'file', ANY_SIZE));
  form.append('file', new Blob([bytes]), `sound.${kindOf(bytes)}`);
  for (const [name, value] of Object.entries(fields)) if (value != null) form.append(name, String(value));
  for (const name of include ?? []) form.append('include[]', name);
  if (adapters && adapters.length > 0) form.append('adapters', JSON.stringify(adapters));
  return form;
}

function kindOf(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.subarray(0, 4)).toString('latin1');
  return { RIFF: 'wav', fLaC: 'flac' }[start] ?? 'mp3';
}

/** Parses a body: JSON with a text, or the text itself. */
function toTranscription(body: string): Transcription {
  const parsed = parseJson(body) as Sent | null | undefined;
  const sent: Sent = typeof parsed?.text === 'string' ? parsed : { text: body };
  const { logprobs } = sent;
  return { ...endOf(sent, sent.text!.trim()), ...(logprobs ? { logprobs } : {}) };
}

async function* eventsOf(sent: AsyncIterator<Sent> | Iterator<Sent>): AsyncGenerator<TranscriptionEvent> {
  let text = '';
  let last: Sent = {};
  try {
    for (let item = await sent.next(); item.done !== true; item = await sent.next()) {
      const { value } = item;
      const delta = value.delta ?? value.choices?.[0]?.delta?.content;
      if (delta) {
        text += delta;
        yield { type: 'transcript.text.delta', delta };
      }
      last = value;
      if (value.text !== undefined) break;
    }
  } finally {
    await sent.return?.();
  }
  if (text === '' && last.text) yield { type: 'transcript.text.delta', delta: last.text };
  yield { type: 'transcript.text.done', ...endOf(last, last.text ?? text.trim()) };
}

/** Completes a transcript. Its token counts are 0 if the server counts seconds or sends no usage. */
function endOf({ usage, finish_reason }: Sent, text: string): Transcription {
  const counted = usage?.type === 'tokens' ? (usage as TranscriptionUsage) : null;
  return { text, usage: counted ?? NO_TOKENS, finish_reason: finish_reason ?? 'stop' };
}

const NO_TOKENS: TranscriptionUsage = {
  type: 'tokens',
  input_tokens: 0,
  output_tokens: 0,
  total_tokens: 0,
  input_token_details: { audio_tokens: 0, text_tokens: 0 },
};
