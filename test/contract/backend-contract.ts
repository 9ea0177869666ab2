/** Contract of every backend: with equal inputs, every column of sampled rows has the same meaning. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Backend, MEMORY_COPY, MEMORY_REMOVE, NO_ADAPTER } from '../../src/engine/backend/index.ts';
import { ROW_STATUS } from '../../src/engine/native/index.ts';
import { type Row, toRows } from '../fakes/rows.ts';
import {
  CONTRACT_LIMITS,
  drive,
  free,
  type Opened,
  type Sampled,
  type SamplerOptions,
} from './backend-driver.ts';
import { draftContract } from './draft-contract.ts';
import { savedSlotContract } from './saved-slot-contract.ts';

const PROMPT = [84, 104, 101, 32, 99, 97, 112, 105, 116, 97, 108];
const OTHER = [72, 101, 108, 108, 111];
const NEXT = [110, 111, 119];
const ALL_SLOTS = [0, 1, 2, 3];

/** Runs the contract on a backend. */
export function backendContract(name: string, open: () => Promise<Opened>): void {
  describe(`${name} obeys the backend contract`, () => {
    let opened: Opened;
    let backend: Backend;
    beforeAll(async () => {
      opened = await open();
      ({ backend } = opened);
    });
    afterAll(() => opened.close());

    const driver = drive(() => opened);
    const { toStep, step, sampled, rowAfter, expectSame } = driver;

    it('has the limits that it was made with', () => {
      const { kvTokens, batchTokens, slotCount, maxOutputs } = CONTRACT_LIMITS;
      expect(backend).toMatchObject({ kvTokens, batchTokens, slotCount, outputRows: maxOutputs });
      expect(backend.vocabSize).toBeGreaterThan(256);
      expect(backend.rowTile).toBeGreaterThanOrEqual(1);
    });

    describe('a step', () => {
      it('gives a prompt the same row whole, in chunks and in company', async () => {
        const expected = await rowAfter(PROMPT);
        const samples = () => [sampled({ topLogprobs: 2 })];
        await step([{ slot: 0, from: 0, tokens: PROMPT.slice(0, 4) }], free(0));
        const [chunked] = await step([{ slot: 0, from: 4, tokens: PROMPT.slice(4), samples: samples() }]);
        expectSame(chunked!, expected);
        const [first, second] = await step(
          [
            { slot: 0, from: 0, tokens: PROMPT, samples: samples() },
            { slot: 1, from: 0, tokens: OTHER, samples: samples() },
          ],
          [...free(0), ...free(1)],
        );
        expectSame(first!, expected);
        expectSame(second!, await rowAfter(OTHER));
      });

      it('samples several times from one row, each by its own sampler', async () => {
        const best = (await rowAfter(PROMPT)).token;
        const given = [sampled(), sampled({ allowed: [66] }), sampled({ allowed: [67] })];
        const rows = await step([{ slot: 0, from: 0, tokens: PROMPT, samples: given }], free(0));
        expect(rows.map(({ token }) => token)).toEqual([best, 66, 67]);
      });

      it('runs at its limits', async () => {
        const { batchTokens, slotCount, maxOutputs } = CONTRACT_LIMITS;
        const tokens = Array.from({ length: batchTokens / slotCount }, (_, i) => 65 + i);
        const feeds = Array.from({ length: slotCount }, (_, slot) => ({ slot, from: 0, tokens }));
        const sampleRows = Int32Array.from({ length: maxOutputs }, (_, i) => (i * batchTokens) / maxOutputs);
        const samplers = Array.from(sampleRows, () => opened.sampler());
        const rows = await step(feeds, ALL_SLOTS.flatMap(free), { sampleRows, samplers });
        const perSlot = rows.slice(0, maxOutputs / slotCount).map(({ token }) => token);
        const all = Array.from({ length: slotCount }, () => perSlot).flat();
        expect(rows.map(({ token }) => token)).toEqual(all);
      });

      it.each([
        ['the token that was sampled', 0],
        ['another token', 1],
      ])('may run ahead, which changes nothing, whether then comes %s', async (_, choice) => {
        const samples = [sampled({ topLogprobs: 2 })];
        const [first] = await step([{ slot: 0, from: 0, tokens: PROMPT, samples }], free(0), {
          mayRunAhead: true,
        });
        const tokens = [first!.top[choice]![0]];
        const [second] = await step([{ slot: 0, from: PROMPT.length, tokens, samples }]);
        expectSame(second!, await rowAfter([...PROMPT, ...tokens]));
      });
    });

    describe('memory edits', () => {
      const COUNT = PROMPT.length;
      it.each<[string, edits: number[], slot: number, kept: number]>([
        ['copy a whole slot', [MEMORY_COPY, 0, 1, 0, -1], 1, COUNT],
        ['copy the beginning of a slot', [MEMORY_COPY, 0, 1, 0, 5], 1, 5],
        ['leave the copied slot as it is', [MEMORY_COPY, 0, 1, 0, 5], 0, COUNT],
        ['cut a slot', [MEMORY_REMOVE, 0, 0, 5, -1], 0, 5],
        ['free a slot', [MEMORY_REMOVE, 0, 0, -1, -1], 0, 0],
        [
          'are made in order',
          [MEMORY_COPY, 0, 1, 0, -1, MEMORY_REMOVE, 0, 0, -1, -1, MEMORY_REMOVE, 1, 0, 7, -1],
          1,
          7,
        ],
      ])('%s', async (_, edits, slot, kept) => {
        await step([{ slot: 0, from: 0, tokens: PROMPT }], ALL_SLOTS.flatMap(free));
        const samples = [sampled({ topLogprobs: 2 })];
        const [row] = await step([{ slot, from: kept, tokens: NEXT, samples }], edits);
        expectSame(row!, await rowAfter([...PROMPT.slice(0, kept), ...NEXT]));
      });
    });

    draftContract(driver);

    describe('a sampled row', () => {
      const rowsOf = async (samples: readonly Sampled[]): Promise<Row[]> =>
        await step([{ slot: 0, from: 0, tokens: PROMPT, samples }], free(0));
      const letters = [81, 82];
      const nothing = { rank: 0, logprob: 0, top: [], forced: [], drafts: [], candidates: [] };

      it('has its log-probability, rank and the best tokens where they are asked for', async () => {
        const [bare, chosen, best] = await rowsOf([
          {},
          sampled({ topLogprobs: 0 }),
          sampled({ topLogprobs: 3 }),
        ]);
        expect(bare).toMatchObject({ ...nothing, status: ROW_STATUS.SAMPLED, isFinal: false });
        expect(chosen).toMatchObject({ token: bare!.token, rank: 1, top: [] });
        expect(best).toMatchObject({ token: bare!.token, logprob: chosen!.logprob, rank: 1 });
        expect(best!.top[0]).toEqual([best!.token, best!.logprob]);
        const logprobs = best!.top.map(([, logprob]) => logprob);
        expect(logprobs).toEqual(logprobs.toSorted((a, b) => b - a));
        expect(logprobs.reduce((sum, logprob) => sum + Math.exp(logprob), 0)).toBeLessThanOrEqual(1.0001);
      });

      it('has the log-probability of the model, whatever masks leave', async () => {
        const [row] = await rowsOf([sampled({ allowed: letters, topLogprobs: backend.vocabSize })]);
        expect(letters).toContain(row!.token);
        expect(row!.top).toHaveLength(backend.vocabSize);
        expect(row!.top[row!.rank - 1]![1]).toBe(row!.logprob);
        expect(row!.top.find(([id]) => id === row!.token)![1]).toBe(row!.logprob);
      });

      it('has candidates instead of a token, best first', async () => {
        const [row, best] = await rowsOf([
          sampled({ candidates: 4, topLogprobs: 2 }),
          sampled({ topLogprobs: 4 }),
        ]);
        expect(row).toMatchObject({ status: ROW_STATUS.SAMPLED, token: -1, forced: [] });
        expect(row!.candidates).toEqual(
          best!.top.map(([id, logprob]) => [
            id,
            expect.closeTo(logprob, opened.digits),
            expect.closeTo(logprob, opened.digits),
          ]),
        );
        expect(row!.top).toEqual(best!.top.slice(0, 2));
      });

      it('has only the candidates that masks leave', async () => {
        const [row] = await rowsOf([sampled({ candidates: 4, allowed: letters })]);
        expect(row!.candidates.map(([id]) => id).toSorted()).toEqual(letters);
      });

      const fill = (value: number) => (row: Float32Array) => {
        row.fill(value);
        return true;
      };
      it.each<
        [string, texts: string[] | null, allowed: number[] | undefined, Sampled['edit'], status: number]
      >([
        ['is sampled', null, undefined, undefined, ROW_STATUS.SAMPLED],
        ['has no allowed token', ['Q'], [82], undefined, ROW_STATUS.NO_TOKEN_ALLOWED],
        ['is complete, and no token is allowed', ['', 'Q'], [82], undefined, ROW_STATUS.COMPLETE],
        ['was edited', null, undefined, () => true, ROW_STATUS.SAMPLED],
        ['awaits an edit that has failed', null, undefined, () => false, ROW_STATUS.AWAITS_EDIT],
        ['was edited to NaN', null, undefined, fill(Number.NaN), ROW_STATUS.NOT_NUMBERS],
        ['was edited to nothing', null, undefined, fill(-Infinity), ROW_STATUS.NO_TOKEN_ALLOWED],
        ['was edited, and has no allowed token', ['Q'], [82], () => true, ROW_STATUS.NO_TOKEN_ALLOWED],
        [
          'was edited, is complete, and no token is allowed',
          ['', 'Q'],
          [82],
          () => true,
          ROW_STATUS.COMPLETE,
        ],
      ])('says that it %s', async (_, texts, allowed, edit, status) => {
        const matcher = texts && (await opened.matcher(texts));
        const sampler = opened.sampler(allowed ? { allowed } : {});
        const [row, beside] = await rowsOf([{ sampler, matcher, ...(edit ? { edit } : {}) }, {}]);
        expect(row!.status).toBe(status);
        if (status !== ROW_STATUS.SAMPLED)
          expect(row).toEqual({ ...nothing, status, token: -1, isFinal: false });
        expect(beside).toEqual((await rowsOf([{}]))[0]);
      });

      it.each<[string, texts: string[], text: RegExp, isFinal: boolean]>([
        ['to the end where the grammar leaves no choice', ['QXQXQX'], /^QXQXQX$/, true],
        ['until there is a choice', ['QXQXQXA', 'QXQXQXB'], /^QXQXQ?X?$/, false],
        ['until the end is a choice', ['QXQXQX', 'QXQXQXB'], /^QXQXQ?X?$/, false],
      ])('has forced tokens %s', async (_, texts, text, isFinal) => {
        const [row, beside] = await rowsOf([{ matcher: await opened.matcher(texts) }, {}]);
        const { forcesTokens } = opened;
        expect(opened.textOf([row!.token, ...row!.forced])).toMatch(forcesTokens ? text : /^Q$/);
        expect(row!.isFinal).toBe(forcesTokens && isFinal);
        expect(beside!.forced).toEqual([]);
      });

      it.each<[string, Omit<Sampled, 'matcher' | 'sampler'>, SamplerOptions]>([
        ['has log-probabilities', {}, { topLogprobs: 0 }],
        ['is edited', { edit: () => true }, {}],
      ])('has no forced tokens where it %s, and is final with the last token', async (_, sample, options) => {
        const matcher = await opened.matcher(['QX']);
        const given = { ...sample, matcher, sampler: opened.sampler(options) };
        let from = 0;
        let tokens: readonly number[] = PROMPT;
        for (const [text, isFinal] of [
          ['Q', false],
          ['X', true],
        ] as const) {
          const [row] = await step([{ slot: 0, from, tokens, samples: [given] }], from === 0 ? free(0) : []);
          expect(opened.textOf([row!.token])).toBe(text);
          expect(row).toMatchObject({ forced: [], isFinal });
          from += tokens.length;
          tokens = [row!.token];
        }
      });

      it('keeps every column where rows beside it are edited', async () => {
        const texts = ['QXQX'];
        const make = async (edit: Sampled['edit'] | null): Promise<Row[]> =>
          await rowsOf([
            { ...sampled({ topLogprobs: 2 }), ...(edit ? { edit } : {}) },
            { matcher: await opened.matcher(texts) },
            sampled({ candidates: 3, topLogprobs: 1 }),
            {
              ...sampled({ topLogprobs: 0 }),
              matcher: await opened.matcher(['Q']),
              ...(edit ? { edit } : {}),
            },
            sampled({ topLogprobs: 3 }),
          ]);
        expect(await make(() => true)).toEqual(await make(null));
      });

      it('is masked and biased before it is edited; the edit decides, and log-probabilities are of the raw row', async () => {
        const rows: Float32Array[] = [];
        const edit = (row: Float32Array): boolean => {
          rows.push(row.slice());
          row.fill(-Infinity)[90] = 0;
          return true;
        };
        const [edited, plain] = await rowsOf([
          { ...sampled({ allowed: letters, topLogprobs: 1 }), edit },
          sampled({ topLogprobs: backend.vocabSize }),
        ]);
        const finite = Array.from(rows[0]!, (_, id) => id).filter((id) => rows[0]![id]! > -Infinity);
        expect(finite).toEqual(letters);
        const [, logprob] = plain!.top.find(([id]) => id === 90)!;
        expect(edited).toMatchObject({
          token: 90,
          top: [plain!.top[0]],
          logprob: expect.closeTo(logprob, opened.digits),
        });
      });
    });

    it('scores tokens: log-probability, rank and the best alternatives of each row', async () => {
      const best = await rowAfter(PROMPT);
      const last = PROMPT.length - 1;
      const scoreRows = Int32Array.of(
        last,
        best.token,
        2,
        last,
        best.top[1]![0],
        0,
        3,
        PROMPT[4]!,
        backend.vocabSize,
      );
      const { samples, scores } = await backend.step(
        toStep([{ slot: 0, from: 0, tokens: PROMPT }], free(0), { scoreRows }),
      );
      const [first, second, third] = toRows(scores);
      expect(samples.tokens).toHaveLength(0);
      expectSame(first!, best);
      expectSame(second!, { ...best, token: best.top[1]![0], logprob: best.top[1]![1], rank: 2, top: [] });
      expect(third!.top).toHaveLength(backend.vocabSize);
      expect(third!.top.find(([id]) => id === PROMPT[4])![1]).toBe(third!.logprob);
    });

    describe('an abort', () => {
      it('ends the running step with ABORTED or lets it finish, and does not touch the next one', async () => {
        const expected = await rowAfter(PROMPT);
        const tokens = Array.from({ length: 60 }, (_, i) => 65 + (i % 50));
        const running = step([{ slot: 0, from: 0, tokens, samples: [{}] }], free(0)).catch(
          (error: unknown) => error,
        );
        backend.abortStep();
        const result = await running;
        if (result instanceof Error) expect(result).toMatchObject({ code: 'ABORTED' });
        expectSame(await rowAfter(PROMPT), expected);
        const [row] = await step(
          [{ slot: 0, from: 0, tokens: PROMPT, samples: [sampled({ topLogprobs: 2 })] }],
          free(0),
        );
        expectSame(row!, expected);
      });

      it('changes nothing between two steps', async () => {
        const expected = await rowAfter(PROMPT);
        backend.abortStep();
        expectSame(await rowAfter(PROMPT), expected);
      });
    });

    savedSlotContract(() => backend, driver);

    describe('an adapter', () => {
      const rowOf = async (adapter: number): Promise<Row> =>
        (
          await step(
            [{ slot: 0, from: 0, tokens: PROMPT, samples: [sampled({ topLogprobs: 2 })] }],
            free(0),
            {
              adapter,
            },
          )
        )[0]!;

      it('has a number of its own, changes steps that name it and no others; or is refused by name', async () => {
        if (opened.adapter === null) {
          const refused = backend.loadAdapter('tuned.gguf');
          return await expect(refused).rejects.toMatchObject({
            code: 'UNSUPPORTED',
            message: expect.stringContaining('tuned.gguf'),
          });
        }
        const plain = await rowOf(NO_ADAPTER);
        const [first, second] = [
          await backend.loadAdapter(opened.adapter),
          await backend.loadAdapter(opened.adapter),
        ];
        expect(new Set([NO_ADAPTER, first, second]).size).toBe(3);
        expect((await rowOf(first)).top).not.toEqual(plain.top);
        expectSame(await rowOf(NO_ADAPTER), plain);
        await backend.freeAdapter(first);
        await backend.freeAdapter(second);
        await expect(rowOf(first)).rejects.toThrow(/not loaded/);
        expectSame(await rowOf(NO_ADAPTER), plain);
      });

      it('that is none is refused', async () => {
        const code = opened.adapter === null ? 'UNSUPPORTED' : 'MODEL_INVALID';
        await expect(backend.loadAdapter('')).rejects.toMatchObject({ code });
      });
    });

    it('runs no step once it is closed', async () => {
      await backend.close();
      await backend.close();
      await expect((async () => step([{ slot: 0, from: 0, tokens: PROMPT }]))()).rejects.toMatchObject({
        code: 'CLOSED',
      });
    });
  });
}
