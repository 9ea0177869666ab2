/** Several services -> one. Each request goes to the member that caches its conversation, or to the least busy one. */
import { setTimeout as sleep } from 'node:timers/promises';
import { abortedBy, OnpolicyError } from '../../../errors.ts';
import {
  checkArguments,
  fault,
  type PoolOptions,
  type TranscriptionRequest,
  throwFaults,
  withDefaults,
} from '../../../protocol/index.ts';
import {
  type AdapterLoader,
  type AnswerStream,
  type CallArguments,
  type CallOptions,
  ChatCompletionStream,
  type CheckpointsResource,
  type Completions,
  METHODS,
  type Method,
  type MethodName,
  type ModelsResource,
  type PooledService,
  type PrefixCacheReset,
  type Service,
  type TrainingJobsResource,
  type TrainingRunsResource,
  type TranscriptionAnswer,
  TranscriptionStream,
} from '../../../protocol/service/index.ts';
import { rowsAtOnceOf } from '../../batch/index.ts';
import { callChecked, callMethod, hasMethod } from '../../checked-calls.ts';
import { TrainingFacade } from '../../facade.ts';
import { transcribe } from '../../wires/index.ts';
import { Affinity } from './affinity.ts';
import { LONGEST_WAIT_MS } from './retrying-client.ts';

/**
 * Combines several services into one, for rollouts on many machines. Completions are spread over all members; models, checkpoints and
 * training use one member. An unreachable member is suspended for a while. Its unanswered requests go to the next member; its running
 * streams end with `NETWORK_FAILED`. A member that says when to retry is not used before then. If all members do, a request waits for the
 * earliest of them, at most twice and at most 30 s. Closing the pool closes its members.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export function createPool(
  services: readonly (Service | Completions)[],
  options: PoolOptions = {},
): PooledService {
  const { trainer, retryMs } = withDefaults('PoolOptions', checkArguments('PoolOptions', options));
  if (services.length === 0) throwFaults([fault(['services'], 'length', 'at least one', services)]);
  if (trainer >= services.length)
    throwFaults([fault(['trainer'], 'range', `an integer from 0 to ${services.length - 1}`, trainer)]);
  return new Pool(services, trainer, retryMs);
}

type Member = {
  readonly service: Completions & Partial<Service & AdapterLoader>;
  /** Number of running requests. */
  active: number;
  /** Number of failures since the last answer. Requests that fail together count once. */
  failures: number;
  /** Time of the last failure, as `performance.now()`. */
  failedMs: number;
  /** Time from which the member gets requests, as `performance.now()`. A suspended member gets them earlier if no other one is left. */
  readyMs: number;
  /** Time from which the member accepts requests by its own `Retry-After`, as `performance.now()`. It gets none earlier. */
  openMs: number;
};

/** Called when a request is over. */
type OnEnd = (error?: unknown) => void;

/** A request to be sent to one of the members. */
type Call<Answer> = {
  /** Kind of answer, used in error messages. */
  readonly kind: string;
  /** Digests of the prefixes of the conversation or text, used for cache affinity. Empty if no member can have them cached. */
  readonly digests: readonly string[];
  /** Returns a function that calls the member, or null if the member does not support the method. */
  readonly ask: (service: Completions) => (() => Promise<Answer>) | null;
  /** Class of a streamed answer. Undefined for methods that do not stream. */
  readonly Stream: Method['Stream'];
  readonly signal: AbortSignal | undefined;
};

/** A conversation moves to another member if its own runs more than twice as many requests as the least busy one, plus this number. */
const AFFINITY_SLACK = 8;
/** Number of times that a request waits for a member to accept requests again. */
const MOST_WAITS = 2;

class Pool extends TrainingFacade implements PooledService {
  readonly #members: Member[];
  readonly #trainer: Completions & Partial<Service>;
  readonly #retryMs: number;
  readonly #affinity = new Affinity<Member>();
  #next = 0; // start of the search for the least busy member, so that equals alternate
  readonly #closing = new AbortController();

  constructor(services: readonly (Service | Completions)[], trainer: number, retryMs: number) {
    super();
    this.#members = services.map(memberOf);
    this.#trainer = services[trainer]!;
    this.#retryMs = retryMs;
  }

  /**
   * Sends training jobs to the trainer and all other calls to a member. Members get a copy of the request, so that its caller cannot change
   * it meanwhile.
   */
  protected async ask(name: MethodName, args: CallArguments): Promise<unknown> {
    if (name === 'train') {
      if (!hasMethod(this.#trainer, name)) throw cannotTrain();
      return await callChecked(this.#trainer, name, ...args);
    }
    if (name === 'resetPrefixCache') return await this.#resetCaches(args);
    const { what, Stream }: Method = METHODS[name];
    const [request, options] = args as [object, CallOptions];
    const own = ownCopy(request);
    const ask = own === request ? callMethod : callChecked;
    return await this.#distribute({
      kind: what,
      digests: Affinity.digests(own),
      ask: (service) =>
        hasMethod(service, name) ? async () => (await ask(service, name, own, options)) as object : null,
      Stream,
      signal: options.signal,
    });
  }

  /**
   * @internal Transcribes a sound on one member, in the way that the member supports: its own endpoint, a chat, or windows of a long sound.
   */
  transcription(request: TranscriptionRequest, options: CallOptions): Promise<TranscriptionAnswer> {
    return this.#distribute<TranscriptionAnswer>({
      kind: 'transcripts',
      digests: [],
      ask: (service) => () => transcribe(service, request, options),
      Stream: TranscriptionStream,
      signal: options.signal,
    });
  }

  add(service: Service | Completions): void {
    this.requireOpen();
    this.#members.push(memberOf(service));
  }

  async loadAdapter(
    adapter: { readonly name: string; readonly path: string },
    options?: CallOptions,
  ): Promise<void> {
    await this.#atAll((loader) => loader.loadAdapter?.(adapter, options));
  }

  async unloadAdapter(name: string, options?: CallOptions): Promise<void> {
    await this.#atAll((loader) => loader.unloadAdapter?.(name, options));
  }

  /**
   * Runs `change` on all members that support it. A member that is unreachable, or joins later, does not have the adapter; other members
   * answer requests for it.
   */
  async #atAll(change: (member: Partial<AdapterLoader>) => Promise<void> | undefined): Promise<void> {
    this.requireOpen();
    const calls = this.#members.flatMap(({ service }) => change(service) ?? []);
    if (calls.length === 0) throw new OnpolicyError('UNSUPPORTED', 'no member of the pool loads adapters');
    const ends = await Promise.allSettled(calls);
    const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
    const isMissing = (error: unknown) => error instanceof OnpolicyError && error.code === 'NOT_FOUND';
    const refused = failures.filter((error) => !isUnreachable(error) && !isMissing(error));
    if (refused.length > 0 || failures.length === ends.length) throw refused[0] ?? failures[0];
  }

  /** Empties the prefix caches of all members that have some. */
  async #resetCaches(args: CallArguments): Promise<PrefixCacheReset> {
    const members = this.#members.filter(({ service }) => hasMethod(service, 'resetPrefixCache'));
    if (members.length === 0)
      throw new OnpolicyError('UNSUPPORTED', 'no member of the pool has prefix caches');
    const answers = (await Promise.all(
      members.map(({ service }) => callChecked(service, 'resetPrefixCache', ...args)),
    )) as PrefixCacheReset[];
    return { success: answers.every(({ success }) => success) };
  }

  protected requireOpen(): void {
    if (this.#closing.signal.aborted) throw closedError();
  }

  /** Asks one member after the other until one answers. Waits for members that say when to retry. */
  async #distribute<Answer>(call: Call<Answer>): Promise<Answer> {
    const left = new Set(this.#members.filter(({ service }) => call.ask(service)));
    if (left.size === 0) throw new OnpolicyError('UNSUPPORTED', `no member of the pool has ${call.kind}`);
    let failure: unknown = null;
    for (let waits = 0; left.size > 0; ) {
      if (this.#closing.signal.aborted) throw failure ?? closedError();
      const member = this.#choose(call.digests, left);
      if (!member) {
        const openMs = Math.min(...[...left].map((one) => one.openMs));
        const waitMs = Math.ceil(openMs - performance.now());
        failure ??= new OnpolicyError('OVERLOADED', 'all members of the pool are overloaded', {
          retryAfterMs: waitMs,
        });
        if (waits++ === MOST_WAITS || waitMs > LONGEST_WAIT_MS) break;
        await this.#pause(waitMs + 1, call.signal); // a timer may be early
        continue;
      }
      try {
        return await this.#ask(member, call);
      } catch (error) {
        if (!isUnreachable(error) && !isUnknownModel(error)) throw error;
        failure = error;
        if (!error.retryAfterMs) left.delete(member);
      }
    }
    throw failure;
  }

  async #pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const stop = AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])]);
    await sleep(ms, undefined, { signal: stop }).catch(() => {
      throw signal?.aborted ? abortedBy(signal) : closedError();
    });
  }

  get models(): ModelsResource {
    return this.#resource('models');
  }

  get checkpoints(): CheckpointsResource {
    return this.#resource('checkpoints');
  }

  get trainingJobs(): TrainingJobsResource {
    return this.#resource('trainingJobs');
  }

  get trainingRuns(): TrainingRunsResource | undefined {
    return this.#trainer.trainingRuns;
  }

  override get rowsAtOnce(): number {
    const each = this.#members.map(({ service }) => rowsAtOnceOf(service));
    return each.reduce((sum, rows) => sum + rows, 0);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#members.map(({ service }) => service.close()));
  }

  #resource<Name extends 'models' | 'checkpoints' | 'trainingJobs'>(name: Name): Service[Name] {
    const resource = this.#trainer[name] as Service[Name] | undefined;
    if (!resource) throw cannotTrain();
    return resource;
  }

  /**
   * Chooses the member that caches the conversation unless it is much busier than others, else the least busy one. Returns null if no
   * member accepts requests.
   */
  #choose(digests: readonly string[], left: ReadonlySet<Member>): Member | null {
    const nowMs = performance.now();
    const open = [...left].filter(({ openMs }) => openMs <= nowMs);
    const ready = open.filter(({ readyMs }) => readyMs <= nowMs);
    if (ready.length === 0) return open.toSorted((a, b) => a.readyMs - b.readyMs)[0] ?? null;
    const start = this.#next++ % ready.length;
    const turns = [...ready.slice(start), ...ready.slice(0, start)];
    const leastBusy = turns.reduce((least, one) => (one.active < least.active ? one : least));
    const known = this.#affinity.find(digests);
    const isFit = known && ready.includes(known) && known.active <= 2 * leastBusy.active + AFFINITY_SLACK;
    return isFit ? known : leastBusy;
  }

  async #ask<Answer>(member: Member, { digests, ask, Stream }: Call<Answer>): Promise<Answer> {
    this.#affinity.note(digests, member);
    member.active += 1;
    const startMs = performance.now();
    let isOver = false;
    const end: OnEnd = (error) => {
      if (isOver) return;
      isOver = true;
      member.active -= 1;
      if (!isUnreachable(error)) return;
      const nowMs = performance.now();
      if (error.retryAfterMs !== undefined) member.openMs = nowMs + error.retryAfterMs;
      else if (startMs > member.failedMs) {
        member.failures += 1;
        member.failedMs = nowMs;
        this.#suspend(member);
      }
    };
    if (member.failures > 0) this.#suspend(member); // only one request tries a failed member
    try {
      const answer = await ask(member.service)!();
      if (startMs > member.failedMs) member.failures = member.readyMs = 0;
      if (Stream && isStream(answer)) {
        const stream = new Stream(watched(answer, end), stopOf(answer, end));
        const isChat = answer instanceof ChatCompletionStream && stream instanceof ChatCompletionStream;
        return (isChat ? stream.endReasoningWith(() => answer.endReasoning()) : stream) as Answer;
      }
      end();
      return answer;
    } catch (error) {
      end(error);
      throw error;
    }
  }

  #suspend(member: Member): void {
    const ms = Math.min(LONGEST_WAIT_MS, this.#retryMs * 2 ** (member.failures - 1));
    member.readyMs = performance.now() + ms * (0.5 + Math.random() / 2);
  }
}

function memberOf(service: Service | Completions): Member {
  return { service, active: 0, failures: 0, failedMs: 0, readyMs: 0, openMs: 0 };
}

/** Copies lists and plain objects. Functions, bytes and instances of classes are shared. */
function ownCopy<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(ownCopy) as Value;
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, ownCopy(inner)])) as Value;
}

function isStream(answer: unknown): answer is AnswerStream<never> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer;
}

async function* watched<Chunk>(chunks: AsyncIterable<Chunk>, end: OnEnd): AsyncGenerator<Chunk> {
  try {
    yield* chunks;
  } catch (error) {
    end(error);
    throw error;
  } finally {
    end();
  }
}

function stopOf(stream: { abort(): void }, end: OnEnd): () => void {
  return () => {
    stream.abort();
    end();
  };
}

const UNREACHABLE = new Set<OnpolicyError['code']>(['NETWORK_FAILED', 'CLOSED', 'OVERLOADED']);

/** Returns true if the error means that the member is unreachable, closing or overloaded. */
function isUnreachable(error: unknown): error is OnpolicyError {
  return error instanceof OnpolicyError && UNREACHABLE.has(error.code);
}

/** Returns true if the member does not have the model, which another member may have. */
function isUnknownModel(error: unknown): error is OnpolicyError {
  return error instanceof OnpolicyError && error.code === 'MODEL_NOT_FOUND';
}

function closedError(): OnpolicyError {
  return new OnpolicyError('CLOSED', 'the pool is closed');
}

function cannotTrain(): OnpolicyError {
  return new OnpolicyError('UNSUPPORTED', "the pool's trainer only answers requests; see the option trainer");
}
