/** A request with beam search -> its hypotheses, each handed to a choice. Controls the sequences of the beams in the engine. */

import { type Engine, type Group, type Listener, Sequence } from '../engine/index.ts';
import {
  grammarAddon,
  type Handle,
  ROW_STATUS,
  type SampledRows,
  type SamplerHandle,
} from '../engine/native/index.ts';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { errorAt, OnpolicyError } from '../errors.ts';
import { BeamSearch, type Expansion, type Hypothesis, type Path, stepsOf } from '../sampling/index.ts';
import type { Choice } from './choice.ts';
import { EMPTY_TAIL, extendTail, type StopTail } from './stop-tail.ts';
import type { StopRules } from './text-out.ts';

export type BeamRunOptions = {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly group: Group;
  readonly rules: StopRules;
  /** Sampler with `candidates`, seeded with the prompt only. */
  readonly sampler: SamplerHandle;
  /** A copy of a sampler in its current state. */
  readonly forkSampler: (sampler: SamplerHandle) => SamplerHandle;
  /** The grammar that constrains every beam, or null. */
  readonly matcher: Handle | null;
  readonly width: number;
  readonly lengthPenalty: number;
  /** Receives the hypotheses, or the error if there are none. */
  readonly onEnd: (hypotheses: readonly BeamHypothesis[] | OnpolicyError) => void;
};

/** The candidates of one beam with their own log-probabilities, and the model's best tokens at that place. */
type BeamExpansion = Expansion & {
  readonly ids: Int32Array;
  readonly scores: Float32Array;
  readonly logprobs: Float32Array; // (candidates)
  readonly topIds: Int32Array; // (alternatives)
  readonly topLogprobs: Float32Array; // (alternatives)
};

export type BeamHypothesis = Hypothesis<BeamExpansion>;

type Beam = { sequence: Sequence; expansion: BeamExpansion | null };

export class BeamRun {
  readonly #options: BeamRunOptions;
  readonly #search: BeamSearch<BeamExpansion>;
  readonly #tails = new WeakMap<Path<BeamExpansion>, StopTail>();
  readonly #matchers = new WeakMap<Path<BeamExpansion>, Handle>(); // after the last token of each path
  readonly #root: Sequence;
  #beams: Beam[]; // in the order of the search's live ones
  #made = 1; // sequences

  constructor(options: BeamRunOptions) {
    this.#options = options;
    const { engine, group, sampler, rules } = options;
    if (options.width > engine.maxRunning)
      throw errorAt(
        'n',
        'INVALID_REQUEST',
        `expected at most the ${engine.maxRunning} beams that can run at the same time, got ${options.width}`,
      );
    this.#search = new BeamSearch<BeamExpansion>({
      width: options.width,
      promptTokens: group.prompt.length,
      maxTokens: rules.maxTokens,
      lengthPenalty: options.lengthPenalty,
      endIds: endTokens(rules),
      eosId: rules.eosId,
      endsText: (path) => this.#endsGrammar(path) || (rules.stops !== null && this.#endsText(path)),
    });
    this.#root = new Sequence(group, 0, sampler);
    this.#root.matcher = options.matcher;
    this.#beams = [{ sequence: this.#root, expansion: null }];
    engine.submit(this.#root, this.#listen(this.#beams[0]!));
  }

  /** Always null: the number of choices is known only when the search is done. */
  readonly placed = null;

  /** Number of prompt tokens that the prefix cache saved. */
  get cachedTokens(): number {
    return Math.max(0, this.#root.place.cachedTokens);
  }

  /** Always empty, because sequences are forked and dropped. Requests for timings are refused with beams. */
  readonly times = [];

  /** Beams reason to their end. */
  endReasoning(): boolean {
    return false;
  }

  stop(): void {
    for (const { sequence } of this.#beams) this.#options.engine.remove(sequence);
    this.#beams = [];
  }

  #listen(beam: Beam): Listener {
    return {
      onToken: () => true, // a sampler with candidates draws no token
      onCandidates: (rows, row) => {
        beam.expansion = readExpansion(rows, row);
        if (this.#beams.every(({ expansion }) => expansion !== null)) this.#advance();
      },
      onComplete: () => {}, // called for sampled tokens only
      onError: (error) => this.#end(error),
    };
  }

  #advance(): void {
    const parents = this.#search.step(this.#beams.map(({ expansion }) => expansion!));
    if (!this.#search.isDone) return this.#move(parents);
    const found = this.#search.results();
    this.#end(
      found.length > 0
        ? found
        : new OnpolicyError('NO_ALLOWED_TOKEN', 'the constraints of this request left no token to sample'),
    );
  }

  /** Makes the sequences of the live beams: a beam's first child continues its sequence, further ones fork it. */
  #move(parents: readonly number[]): void {
    const { engine } = this.#options;
    const old = this.#beams;
    for (const [index, { sequence }] of old.entries()) if (!parents.includes(index)) engine.discard(sequence);
    const first = new Set<number>();
    this.#beams = parents.map((index) => {
      const parent = old[index]!;
      if (first.has(index)) return this.#fork(parent.sequence);
      first.add(index);
      return parent;
    });
    for (const [index, beam] of this.#beams.entries()) {
      const path = this.#search.live[index]!;
      const { token } = path;
      beam.expansion = null;
      beam.sequence.matcher = this.#matchers.get(path) ?? null;
      beam.sequence.sampler.accept(token);
      beam.sequence.append(token);
    }
  }

  #fork(parent: Sequence): Beam {
    const { engine, forkSampler } = this.#options;
    const beam: Beam = { sequence: parent.fork(this.#made++, forkSampler(parent.sampler)), expansion: null };
    engine.fork(parent, beam.sequence, this.#listen(beam));
    return beam;
  }

  #end(result: readonly BeamHypothesis[] | OnpolicyError): void {
    for (const { sequence } of this.#beams.splice(1)) this.#options.engine.discard(sequence); // the first one caches the prompt
    this.stop();
    this.#options.onEnd(result);
  }

  /** Returns true if the grammar allows no token after a path. Stores the matcher of the path. */
  #endsGrammar(path: Path<BeamExpansion>): boolean {
    const before = path.parent ? this.#matchers.get(path.parent) : this.#options.matcher;
    if (!before) return false;
    const grammar = grammarAddon();
    const matcher = grammar.cloneMatcher(before);
    grammar.accept(matcher, path.token);
    this.#matchers.set(path, matcher);
    return grammar.isFinal(matcher);
  }

  #endsText(path: Path<BeamExpansion>): boolean {
    const { rules, tokenizer } = this.#options;
    const before = path.parent ? this.#tails.get(path.parent)! : EMPTY_TAIL;
    const tail = extendTail(before, path.token, rules, tokenizer);
    if (tail) this.#tails.set(path, tail);
    return tail === null;
  }
}

/** Passes a hypothesis to the choice that reports it: every kept token, then the end. */
export function feedChoice(choice: Choice, { path, end }: BeamHypothesis, rules: StopRules): void {
  const steps = stepsOf(path);
  const last = end === 'token' ? steps.pop()! : null;
  for (const [index, step] of steps.entries()) {
    const isFinal = end === 'text' && index === steps.length - 1;
    if (choice.onToken(step.token, toRows(step), 0, isFinal)) return;
  }
  if (last && rules.includeStop) choice.keepToken(last.token, toRows(last), 0);
  choice.end({ reason: end === 'token' ? 'stop' : 'length', stopReason: last?.token ?? null });
}

/** Returns the rules for a choice that reports a hypothesis. They keep only the stop strings, which cut the text. */
export function reportRules(rules: StopRules): StopRules {
  return { ...rules, stopIds: new Set(), endIds: new Set(), eosId: -1, maxTokens: Number.POSITIVE_INFINITY };
}

function endTokens(rules: StopRules): Set<number> {
  const own = rules.ignoreEos ? [] : [...rules.endIds, rules.eosId];
  return new Set([...rules.stopIds, ...own]);
}

function readExpansion(rows: SampledRows, row: number): BeamExpansion {
  const [from, to] = [rows.topOffsets[row]!, rows.topOffsets[row + 1]!];
  const top = { topIds: rows.topIds.slice(from, to), topLogprobs: rows.topLogprobs.slice(from, to) };
  const found = rows.candidates;
  if (!found)
    return { ids: new Int32Array(0), scores: new Float32Array(0), logprobs: new Float32Array(0), ...top };
  const [start, end] = [found.offsets[row]!, found.offsets[row + 1]!];
  return {
    ids: found.ids.slice(start, end),
    scores: found.scores.slice(start, end),
    logprobs: found.logprobs.slice(start, end),
    ...top,
  };
}

/** Returns one step in the form in which the sampler would have reported it. */
function toRows({ token, expansion, index }: Path<BeamExpansion>): SampledRows {
  const { logprobs, topIds, topLogprobs } = expansion;
  return {
    status: Uint8Array.of(ROW_STATUS.SAMPLED),
    isFinal: new Uint8Array(1),
    tokens: Int32Array.of(token),
    logprobs: logprobs.subarray(index, index + 1),
    ranks: Int32Array.of(0),
    topOffsets: Int32Array.of(0, topIds.length),
    topIds,
    topLogprobs,
  };
}
