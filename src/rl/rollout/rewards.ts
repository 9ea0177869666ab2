/** The text of an answer -> its score, from 0 to 1. Simple rewards, and functions that combine them. */

import { isDeepStrictEqual } from 'node:util';
import { parseJson } from '../../common/index.ts';
import { checkArguments } from '../../protocol/index.ts';
import type { Completions } from '../../protocol/service/index.ts';
import { runTests } from './run-tests.ts';
import { wrongInput } from './wrong-input.ts';

/** Scores the text of an answer. */
export type Reward = (answer: string) => number | Promise<number>;

/** 1 if the answer is this text, ignoring white space around it. */
export function exact(expected: string, options: { ignoreCase?: boolean } = {}): Reward {
  checkArguments('ExactArguments', { expected, options });
  const { ignoreCase = false } = options;
  const form = (text: string): string => (ignoreCase ? text.trim().toLowerCase() : text.trim());
  return (answer) => Number(form(answer) === form(expected));
}

const NUMBER = /(?:(?<!\d)[-−])?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?/g;

/** 1 if the last number of the answer is this one, within `tolerance` (default 1e-9). It may have commas between thousands. */
export function numeric(expected: number, options: { tolerance?: number } = {}): Reward {
  checkArguments('NumericArguments', { expected, options });
  const { tolerance = 1e-9 } = options;
  return (answer) => {
    const last = answer.match(NUMBER)?.at(-1);
    if (last === undefined) return 0;
    const value = Number(last.replaceAll(',', '').replace('−', '-'));
    return Number(Math.abs(value - expected) <= tolerance);
  };
}

/** 1 if the answer has a match of the expression. */
export function matches(expression: RegExp): Reward {
  checkArguments('MatchArguments', { expression });
  const { source, flags } = expression;
  return (answer) => Number(new RegExp(source, flags).test(answer)); // a new one: `g` and `y` keep a position
}

/** 1 if the answer is JSON. */
export function validJson(): Reward {
  return (answer) => Number(parseJson(answer) !== undefined);
}

/** The fraction of these fields that the answer, a JSON object, contains with equal values. */
export function jsonFields(expected: Readonly<Record<string, unknown>>): Reward {
  checkArguments('FieldArguments', { expected });
  const fields = Object.entries(expected);
  if (fields.length === 0) throw wrongInput(['expected'], 'at least one field', expected);
  return (answer) => {
    const given = parseJson(answer);
    if (typeof given !== 'object' || given === null) return 0;
    const equal = fields.filter(
      ([name, value]) =>
        Object.hasOwn(given, name) && isDeepStrictEqual((given as Record<string, unknown>)[name], value),
    );
    return equal.length / fields.length;
  };
}

/** Limits of {@link passesTests}. */
export type TestLimits = {
  /** Time for all tests of an answer together, in milliseconds. Default 1000. */
  readonly timeoutMs?: number;
  /** Limit of JavaScript's heap. Default 64. */
  readonly memoryMb?: number;
};

/**
 * The fraction of the tests that the answer's code passes. The code is its first fenced block of JavaScript, or all of it. A test is an
 * expression, evaluated after the code, and passes if it is `true`. Code and tests run in a worker thread, in a context without Node's
 * functions. This prevents accidents, but does not stop code written to break out.
 */
export function passesTests(tests: readonly string[], limits: TestLimits = {}): Reward {
  checkArguments('TestArguments', { tests, limits });
  const { timeoutMs = 1000, memoryMb = 64 } = limits;
  return async (answer) => {
    const code = /```(?:js|javascript|mjs|)\s*\n([\s\S]*?)```/.exec(answer)?.[1] ?? answer;
    return (await runTests({ code, tests, timeoutMs }, memoryMb)) / tests.length;
  };
}

/**
 * The probability that a model gives to `instructions` being true of the answer: one decision, without generated text. Name a model that
 * is not trained meanwhile, such as a fixed checkpoint: a policy must not be judged by the weights that it trains.
 */
export function decided(options: {
  readonly service: Pick<Completions, 'decide'>;
  readonly model?: string | undefined;
  readonly instructions: string;
}): Reward {
  checkArguments('DecidedArguments', options);
  const { service, model, instructions } = options;
  const questions = [{ type: 'predicate', instructions }] as const;
  return async (answer) => {
    const { answers } = await service.decide!({ model, input: answer, questions });
    return answers[0].probability;
  };
}

/** The mean of rewards, each with its weight: `weighted([validJson(), 0.2], [jsonFields({ … }), 0.8])`. */
export function weighted(...parts: readonly (readonly [reward: Reward, weight: number])[]): Reward {
  if (!parts.every(Array.isArray)) throw wrongInput(['parts'], 'lists of a reward and its weight', parts);
  checkArguments('JoinArguments', { rewards: parts.map(([reward]) => reward) });
  const sum = parts.reduce((total, [, weight]) => total + weight, 0);
  if (!(sum > 0) || parts.some(([, weight]) => !(weight >= 0 && weight < Number.POSITIVE_INFINITY)))
    throw wrongInput(
      ['weights'],
      'numbers from 0 up with a sum above 0',
      parts.map(([, weight]) => weight).join(', '),
    );
  return async (answer) => {
    let total = 0;
    for (const [reward, weight] of parts) total += weight * (await reward(answer));
    return total / sum;
  };
}

/** The lowest of the rewards, so that all must hold. Stops at the first 0. */
export function allOf(...rewards: readonly Reward[]): Reward {
  checkArguments('JoinArguments', { rewards });
  return async (answer) => {
    let least = 1;
    for (const reward of rewards) {
      least = Math.min(least, await reward(answer));
      if (least <= 0) break;
    }
    return least;
  };
}

/** The highest of the rewards, so that one is enough. */
export function anyOf(...rewards: readonly Reward[]): Reward {
  checkArguments('JoinArguments', { rewards });
  return async (answer) => {
    let most = 0;
    for (const reward of rewards) most = Math.max(most, await reward(answer));
    return most;
  };
}
