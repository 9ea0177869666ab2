/** Messages of the host process -> calls of a runtime with isolated models -> messages back. The process ends with its host. */
import { type Message, Peer, watched } from '../../common/index.ts';
import {
  AnswerStream,
  ChatCompletionStream,
  METHODS,
  type MethodName,
  type TrainingJob,
} from '../../protocol/service/index.ts';
import { Runtime } from '../runtime.ts';
import type { OpenArguments, RuntimeState } from './index.ts';

/** Milliseconds between two reports while requests run. */
const REPORT_MS = 100;

/** Opens the runtime. Its callbacks call those of the host process. */
function open([options, callbacks, trackerName]: OpenArguments): Runtime {
  const told = Object.fromEntries(
    callbacks.map((name) => [name, (...args: unknown[]) => peer.tell(name, args)]),
  );
  const asked = Object.fromEntries(
    ['startRun', 'log', 'deleteRun'].map((name) => [
      name,
      (...args: unknown[]) => peer.call(`tracker.${name}`, args),
    ]),
  );
  return new Runtime({
    ...options,
    ...told,
    ...(trackerName === null ? {} : { tracker: { name: trackerName, ...asked } }),
    onProgress: (...progress) => {
      if (progress[2] === 'load') sayState();
      if (callbacks.includes('onProgress')) peer.tell('onProgress', progress);
    },
  } as ConstructorParameters<typeof Runtime>[0]);
}

let runtime: Runtime | null = null;
/** Reason why the runtime could not be opened. Every call fails with it. */
let failure: unknown = new Error('expected open first');
const jobs = new Map<string, TrainingJob>();
let reports: NodeJS.Timeout | undefined;

async function serve(method: string, args: unknown[], signal: AbortSignal): Promise<unknown> {
  if (method === 'open') {
    try {
      runtime = open(args as unknown as OpenArguments);
    } catch (error) {
      failure = error;
    }
    return;
  }
  if (method === 'sayState') return sayState();
  if (method === 'close') return await runtime?.close();
  if (!runtime) throw failure;
  if (method === 'jobEnd') return void (await jobs.get(args[0] as string)?.done);
  if (method === 'endReasoning') return (await chats.get(args[0] as string)?.endReasoning()) ?? false;
  reports ??= setInterval(report, REPORT_MS);
  const name = method as MethodName;
  const at = METHODS[name].args.length;
  args[at] = { ...(args[at] as object | undefined), signal };
  const answer = await runtime.here(name, args);
  if (answer instanceof ChatCompletionStream) return keepChat(answer);
  return method === 'train' || method === 'sft' ? keepJob(answer as TrainingJob, args[0]) : answer;
}

/** Streams of chats by the id in their chunks. */
const chats = new Map<string, ChatCompletionStream>();

function keepChat(stream: ChatCompletionStream): AnswerStream<unknown> {
  const chunks = watched(stream, chats, ({ id }) => [id, stream]);
  return new AnswerStream(chunks, () => stream.abort());
}

function keepJob(job: TrainingJob, request: unknown): object {
  jobs.set(job.id, job);
  job.done.catch(() => {}).finally(() => jobs.delete(job.id));
  return { id: job.id, modelId: (request as { model_id: string }).model_id };
}

function state(): Message[] {
  if (!runtime) return [];
  const said: RuntimeState = {
    stats: runtime.stats(),
    mediaStats: runtime.mediaStats(),
    loaded: runtime.loaded(),
  };
  return [{ type: 'tell', method: 'state', args: [said] }];
}

function sayState(): void {
  send(state());
}

function report(): void {
  sayState();
  const { running, waiting } = runtime!.stats();
  if (!peer.isIdle || running + waiting > 0) return;
  clearInterval(reports);
  reports = undefined;
}

/**
 * Message types that start or end an answer. The current statistics are sent before them, so that a caller sees its own request counted.
 */
const COUNTED: readonly Message['type'][] = ['stream', 'value', 'end', 'failed'];

function send(messages: readonly Message[]): void {
  const isCounted = messages.some(({ type }) => COUNTED.includes(type));
  process.send!(isCounted ? [...state(), ...messages] : messages, undefined, {}, () => {});
}

const peer = new Peer({ serve, send });
process.on('message', (messages: Message[]) => peer.receive(messages));
process.on('disconnect', () => process.exit());
// Ignores signals of a terminal or a service manager. The host process gets them too and ends this process when it is done.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
