/** Requests for transcripts -> texts or events, from any service whose chat models accept audio. */

import { errorAt, OnpolicyError } from '../../../errors.ts';
import {
  type ChatCompletion,
  type ChatCompletionRequest,
  checkRequest,
  fault,
  PathTranslation,
  type Transcription,
  type TranscriptionEvent,
  type TranscriptionRequest,
  type TranscriptionUsage,
  throwFaults,
  type ValidationOptions,
} from '../../../protocol/index.ts';
import type { CallOptions, Completions, TranscriptionAnswer } from '../../../protocol/service/index.ts';
import { type ChatCompletionStream, TranscriptionStream } from '../../../protocol/service/index.ts';
import { joint } from './join-texts.ts';

/** A service whose models accept audio. */
export type HearingService = Pick<Completions, 'createCompletion'> & {
  /** Splits a long sound into windows, as files. If absent, a sound is transcribed as a whole. */
  soundWindows?(file: string | Uint8Array): Promise<Uint8Array[]>;
  /** Calls a server's own transcription endpoint. Resolves with null if the server has none. If absent, a chat completion transcribes. */
  transcription?(request: TranscriptionRequest, options: CallOptions): Promise<TranscriptionAnswer | null>;
};

/** Answers a request with a service. */
export async function transcribe(
  service: HearingService,
  input: unknown,
  options: CallOptions = {},
  validation: ValidationOptions = {},
): Promise<TranscriptionAnswer> {
  const request = checkRequest('TranscriptionRequest', input, validation);
  checkFurther(request);
  const there = await service.transcription?.(request, options);
  if (there != null) return there;
  const { file, chunking_strategy: chunking, response_format: format } = request;
  if (chunking === 'auto' && service.soundWindows) {
    const windows = await service.soundWindows(file);
    if (windows.length > 1) return await inWindows(service, request, windows, options);
  }
  try {
    const answer = await PATHS.run(() => service.createCompletion(toChat(request, file), options));
    if (Symbol.asyncIterator in answer)
      return new TranscriptionStream(eventsOf(answer), () => answer.abort());
    return format === 'text' ? textOf(answer) : toTranscription(answer);
  } catch (error) {
    const isLong = error instanceof OnpolicyError && error.code === 'CONTEXT_OVERFLOW';
    if (!isLong || !service.soundWindows) throw error;
    const windows = await service.soundWindows(file);
    if (windows.length === 1) throw error;
    return await inWindows(service, request, windows, options);
  }
}

/** Transcribes the windows of a long sound. */
async function inWindows(
  service: HearingService,
  request: TranscriptionRequest,
  windows: readonly Uint8Array[],
  { signal, ...options }: CallOptions,
): Promise<TranscriptionAnswer> {
  if (request.include && request.include.length > 0)
    refuse('include', 'not for a sound that is processed in windows');
  const stop = new AbortController();
  const call = { ...options, signal: signal ? AbortSignal.any([signal, stop.signal]) : stop.signal };
  const events = hearWindows(windows, (window) =>
    PATHS.run(() => service.createCompletion(toChat({ ...request, stream: false }, window) as Whole, call)),
  );
  if (request.stream) return new TranscriptionStream(events, () => stop.abort());
  for await (const event of events) {
    if (event.type !== 'transcript.text.done') continue;
    const { type: _, ...whole } = event;
    return request.response_format === 'text' ? whole.text : whole;
  }
  throw new OnpolicyError('BACKEND_FAILED', 'the transcript has no end');
}

/** Transcribes one window after the other. The end of a window's text is sent once the next window has shown where it was cut. */
async function* hearWindows(
  windows: readonly Uint8Array[],
  ask: (window: Uint8Array) => Promise<ChatCompletion>,
): AsyncGenerator<TranscriptionEvent> {
  let text = '';
  let open = ''; // text that was not sent yet
  let reason: Transcription['finish_reason'] = 'stop';
  const usage = toUsage(NO_USAGE);
  for (const [i, window] of windows.entries()) {
    const answer = await ask(window);
    const heard = textOf(answer);
    const { end, start } = joint(open, heard);
    const told = open.slice(0, end);
    const rest = heard.slice(start);
    open = told === '' || start > 0 || rest === '' ? rest : ` ${rest}`;
    const delta = i === windows.length - 1 ? told + open : told;
    const { input_tokens, output_tokens, total_tokens, input_token_details } = toUsage(answer.usage);
    usage.input_tokens += input_tokens;
    usage.output_tokens += output_tokens;
    usage.total_tokens += total_tokens;
    usage.input_token_details.audio_tokens += input_token_details.audio_tokens;
    usage.input_token_details.text_tokens += input_token_details.text_tokens;
    if (answer.choices[0]?.finish_reason === 'length') reason = 'length';
    text += delta;
    if (delta !== '') yield { type: 'transcript.text.delta', delta };
  }
  yield { type: 'transcript.text.done', text, usage, finish_reason: reason };
}

/** A chat request with a whole answer. */
type Whole = ChatCompletionRequest & { readonly stream?: false };

const NO_USAGE = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
const AUDIO = 'messages.0.content.0';
/** Paths of the chat's parts in the caller's request. */
const PATHS = new PathTranslation({
  [AUDIO]: 'file',
  [`${AUDIO}.input_audio.data`]: 'file',
  messages: 'file',
});

/** Checks rules that the schema cannot express. Timestamps are refused because models do not return any. */
function checkFurther({
  file,
  response_format: format,
  timestamp_granularities: times,
  ...rest
}: TranscriptionRequest): void {
  if (typeof file !== 'string' && !(file instanceof Uint8Array))
    throwFaults([fault(['file'], 'type', 'base64 text, a data: URI or bytes', file)]);
  if (rest.language && !isLanguage(rest.language))
    throwFaults([fault(['language'], 'value', 'a language such as en or pt-BR', rest.language)]);
  if (format && format !== 'json' && format !== 'text')
    refuse(
      'response_format',
      `${format} needs timestamps, which models do not return; expected json or text`,
    );
  if (times && times.length > 0) refuse('timestamp_granularities', 'models do not return timestamps');
  if (rest.stream && rest.include && rest.include.length > 0) refuse('include', 'not in a stream');
}

function refuse(param: string, what: string): never {
  throw errorAt(param, 'UNSUPPORTED', what);
}

function isLanguage(name: string): boolean {
  try {
    return Intl.getCanonicalLocales(name).length === 1;
  } catch {
    return false;
  }
}

function toChat(request: TranscriptionRequest, file: string | Uint8Array): ChatCompletionRequest {
  const { language, prompt, include, stream, temperature } = request;
  const { model, seed, top_p, max_completion_tokens, timeout_ms, keep_alive, adapters } = request;
  const fields = { model, seed, top_p, max_completion_tokens, timeout_ms, keep_alive, adapters };
  const given = Object.entries(fields).filter(([, value]) => value != null);
  return {
    ...Object.fromEntries(given),
    temperature: temperature ?? 0,
    ...(include && include.length > 0 ? { logprobs: true } : {}),
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    messages: [
      {
        role: 'user',
        content: [
          { type: 'input_audio', input_audio: { data: file, format: '' } }, // the format is detected from the bytes
          { type: 'text', text: instruction(language ?? null, prompt ?? null) },
        ],
      },
    ],
  };
}

function instruction(language: string | null, prompt: string | null): string {
  const spoken =
    language === null ? '' : ` in ${new Intl.DisplayNames(['en'], { type: 'language' }).of(language)}`;
  const hints = prompt ? ` These words may help, do not repeat them: ${prompt}` : '';
  return `Write down word for word what is said${spoken}, and nothing else.${hints}`;
}

function textOf({ choices: [choice] }: ChatCompletion): string {
  return choice?.message.content?.trim() ?? '';
}

function toTranscription(answer: ChatCompletion): Transcription {
  const { finish_reason, logprobs } = answer.choices[0]!;
  return {
    text: textOf(answer),
    usage: toUsage(answer.usage),
    finish_reason: toReason(finish_reason),
    ...(logprobs?.content
      ? {
          logprobs: logprobs.content.map(({ token, logprob, bytes }) => ({
            token,
            logprob,
            bytes: bytes ?? [],
          })),
        }
      : {}),
  };
}

async function* eventsOf(chunks: ChatCompletionStream): AsyncGenerator<TranscriptionEvent> {
  let text = '';
  let reason: string | null = null;
  for await (const { choices, usage } of chunks) {
    const delta = choices[0]?.delta.content ?? '';
    reason = choices[0]?.finish_reason ?? reason;
    // Drops white space at the start of the text.
    const shown = text === '' ? delta.trimStart() : delta;
    text += shown;
    if (shown !== '') yield { type: 'transcript.text.delta', delta: shown };
    if (usage)
      yield {
        type: 'transcript.text.done',
        text: text.trimEnd(),
        usage: toUsage(usage),
        finish_reason: toReason(reason),
      };
  }
}

function toReason(reason: string | null): Transcription['finish_reason'] {
  return reason === 'length' ? 'length' : 'stop';
}

function toUsage({
  prompt_tokens,
  completion_tokens,
  prompt_tokens_details,
}: ChatCompletion['usage']): TranscriptionUsage {
  const audio_tokens = prompt_tokens_details?.media_tokens ?? 0;
  return {
    type: 'tokens',
    input_tokens: prompt_tokens,
    output_tokens: completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    input_token_details: { audio_tokens, text_tokens: prompt_tokens - audio_tokens },
  };
}
