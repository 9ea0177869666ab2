/** The program of a process with isolated models: messages of the host -> a runtime -> messages back. It ends with its host. */
import { type Message, Peer } from './common/index.ts';
import { findMethod, METHODS, type OpenArguments, type RuntimeState } from './isolation/index.ts';
import { Runtime } from './runtime.ts';
import type { TrainingJob } from './service.ts';

/** Milliseconds between two reports while it works. */
const REPORT_MS = 100;

/** Opens the runtime. Its callbacks are those of the host. */
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
/** Why there is none: each call fails with it. */
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
  reports ??= setInterval(report, REPORT_MS);
  const { options } = METHODS[method]!;
  if (options !== undefined) args[options] = { ...(args[options] as object | undefined), signal };
  const { owner, name } = findMethod(runtime, method);
  const answer = await owner[name]!.apply(owner, args);
  return method === 'train' || method === 'sft' ? keepJob(answer as TrainingJob, args[0]) : answer;
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

/** What begins or ends an answer: who has it finds it in the numbers. */
const COUNTED: readonly Message['type'][] = ['stream', 'value', 'end', 'failed'];

function send(messages: readonly Message[]): void {
  const isCounted = messages.some(({ type }) => COUNTED.includes(type));
  process.send!(isCounted ? [...state(), ...messages] : messages, undefined, {}, () => {});
}

const peer = new Peer({ serve, send });
process.on('message', (messages: Message[]) => peer.receive(messages));
process.on('disconnect', () => process.exit());
// Signals of a terminal or a service manager go to the host, too, which ends this process when it is done.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
