/** Values that the addon refuses, and its use in worker threads. */

import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { testing as addon, TESTING_FILE } from '../addon/testing-addon.ts';
import { letterTexts, nativeSampler } from '../fakes/sampling.ts';

const make = (options: unknown) => new addon.SamplerPlan(options as never);

describe('a plan', () => {
  it.each([
    ['no options', undefined, /options/],
    ['no vocabulary', {}, /vocabSize/],
    ['an empty vocabulary', { vocabSize: 0 }, /vocabSize/],
    ['half a token', { vocabSize: 1.5 }, /vocabSize/],
    ['a huge vocabulary', { vocabSize: 2 ** 31 }, /vocabSize/],
    ['an unknown option', { vocabSize: 4, topK: 3 }, /topK/],
    ['a negative temperature', { vocabSize: 4, temperature: -1 }, /temperature/],
    ['NaN', { vocabSize: 4, temperature: Number.NaN }, /temperature/],
    ['infinity', { vocabSize: 4, temperature: Infinity }, /temperature/],
    ['a string', { vocabSize: 4, top_p: '0.5' }, /top_p/],
    ['top_p above 1', { vocabSize: 4, top_p: 1.5 }, /top_p/],
    ['min_p above 1', { vocabSize: 4, min_p: 1.5 }, /min_p/],
    ['top_k below -1', { vocabSize: 4, top_k: -2 }, /top_k/],
    ['a repetition penalty of 0', { vocabSize: 4, repetition_penalty: 0 }, /repetition_penalty/],
    ['bias without values', { vocabSize: 4, logitBiasIds: Int32Array.of(1) }, /logitBiasValues/],
    [
      'bias outside the vocabulary',
      { vocabSize: 4, logitBiasIds: Int32Array.of(4), logitBiasValues: Float32Array.of(1) },
      /logitBiasIds/,
    ],
    [
      'more ids than values',
      { vocabSize: 4, logitBiasIds: Int32Array.of(1, 2), logitBiasValues: Float32Array.of(1) },
      /logitBiasValues/,
    ],
    [
      'a NaN bias',
      { vocabSize: 4, logitBiasIds: Int32Array.of(1), logitBiasValues: Float32Array.of(Number.NaN) },
      /logitBiasValues/,
    ],
    ['a short mask', { vocabSize: 40, allowed: new Uint32Array(1) }, /allowed/],
    ['a mask of bytes', { vocabSize: 40, allowed: new Uint8Array(8) }, /allowed/],
    ['an empty bad word', { vocabSize: 4, bad_words: [''] }, /bad_words/],
    ['bad words without the texts of tokens', { vocabSize: 4, bad_words: ['a'] }, /tokenTexts/],
    ['texts of other tokens', { vocabSize: 4, bad_words: ['a'], tokenTexts: letterTexts(5) }, /tokenTexts/],
    ['bad words of numbers', { vocabSize: 4, bad_words: [1] }, /bad_words/],
    ['a negative stop id', { vocabSize: 4, stopIds: Int32Array.of(-1) }, /stopIds/],
    ['negative min_tokens', { vocabSize: 4, min_tokens: -1 }, /min_tokens/],
    ['top_logprobs below -1', { vocabSize: 4, topLogprobs: -2 }, /topLogprobs/],
    ['a number for a switch', { vocabSize: 4, processedLogprobs: 1 }, /processedLogprobs/],
  ])('refuses %s', (_, options, message) => {
    expect(() => make(options)).toThrow(message);
  });

  it('takes undefined for absent', () => {
    expect(() => make({ vocabSize: 4, top_k: undefined, allowed: undefined })).not.toThrow();
  });

  it('does not notice later changes of its arrays', () => {
    const allowed = Uint32Array.of(0b0010);
    const plan = make({ vocabSize: 4, allowed });
    allowed.fill(~0);
    expect(new addon.Sampler(plan, 1n).sample(new Float32Array(4)).token).toBe(1);
  });
});

describe('a sampler', () => {
  const sampler = nativeSampler({ vocabSize: 100 }, 1n);
  const anything = (value: unknown) => value as never;

  it.each([
    ['a plan that is none', () => new addon.Sampler(anything({}), 1n), /plan/],
    ['a sampler as plan', () => new addon.Sampler(anything(sampler), 1n), /plan/],
    ['a number as seed', () => new addon.Sampler(make({ vocabSize: 4 }), anything(1)), /seed/],
    ['unknown kernels', () => sampler.sample(new Float32Array(100), null, 'gpu'), /kernels/],
    ['a short row', () => sampler.sample(new Float32Array(99)), /logits/],
    ['a long row', () => sampler.sample(new Float32Array(101)), /logits/],
    ['float64 logits', () => sampler.sample(anything(new Float64Array(100))), /logits/],
    ['no logits', () => sampler.sample(anything(undefined)), /logits/],
    ['a short mask', () => sampler.sample(new Float32Array(100), new Uint32Array(3)), /mask/],
    ['an array as mask', () => sampler.sample(new Float32Array(100), anything([1, 2, 3, 4])), /mask/],
    ['a token outside the vocabulary', () => sampler.accept(100), /id/],
    ['a negative token', () => sampler.accept(-1), /id/],
    ['a prompt outside the vocabulary', () => sampler.acceptPrompt(Int32Array.of(1, 100)), /ids/],
    ['an array as prompt', () => sampler.acceptPrompt(anything([1])), /ids/],
    [
      'an edited row of another size',
      () => sampler.sampleEdited(new Float32Array(100), new Float32Array(9)),
      /row/,
    ],
    ['a negative count', () => sampler.drawMany(new Float32Array(100), -1), /count/],
    ['a score outside the row', () => addon.scoreRow(new Float32Array(3), 3, 0), /token/],
    ['an empty row', () => addon.scoreRow(new Float32Array(), 0, 0), /logits/],
  ])('refuses %s', (_, act, message) => {
    expect(act).toThrow(message);
  });

  it('has methods that refuse another object', () => {
    expect(() => sampler.accept.call(anything({}), 1)).toThrow();
    expect(() => sampler.accept.call(anything(make({ vocabSize: 4 })), 1)).toThrow();
  });

  it('outlives its plan object', () => {
    const samplers = Array.from({ length: 1000 }, () => new addon.Sampler(make({ vocabSize: 4 }), 1n));
    globalThis.gc!();
    expect(samplers.at(-1)!.sample(new Float32Array(4)).status).toBe(0);
  });
});

it('loads in a worker thread, beside the main one', async () => {
  const source = `
    const { parentPort, workerData } = require('node:worker_threads');
    const addon = require(workerData);
    const sampler = new addon.Sampler(new addon.SamplerPlan({ vocabSize: 1000 }), 6n);
    parentPort.postMessage(sampler.drawMany(new Float32Array(1000), 50));
  `;
  const worker = new Worker(source, { eval: true, workerData: TESTING_FILE });
  const drawn = await new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  await worker.terminate();
  expect(drawn).toEqual(nativeSampler({ vocabSize: 1000 }, 6n).drawMany(new Float32Array(1000), 50));
});
