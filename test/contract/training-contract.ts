/** Contract of every service about models, logs, checkpoints and training jobs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import type { TrainingJobEvent, TrajectoryGroup } from '../../src/protocol/index.ts';
import type { Service } from '../../src/protocol/service/service.ts';

/** Two attempts at one question. */
const GROUPS: readonly TrajectoryGroup[] = [{ trajectories: [attempt('Lima', 1), attempt('Paris', 0)] }];

function attempt(content: string, reward: number): TrajectoryGroup['trajectories'][0] {
  const message = { role: 'assistant', content };
  const logprobs = { content: [{ token: 'token_id:5', logprob: -0.5 }] };
  const question = { role: 'user', content: 'What is the capital of Peru?' } as const;
  return { reward, messages_and_choices: [question, { message, logprobs, token_ids: [5] }] };
}

/** The code, message and faults that a call rejects with. */
async function failureOf(call: Promise<unknown>): Promise<Partial<OnpolicyError>> {
  const error = await call.then(
    () => new Error('it did not reject'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof OnpolicyError)) throw error;
  const { code, message, param, detail } = error;
  return { code, message, ...(param ? { param } : {}), ...(detail ? { detail } : {}) };
}

/** Runs the contract on a service whose training jobs have two steps. `base_model`: one that it can train. */
export function trainingContract(
  name: string,
  open: () => Promise<{ service: Service; close: () => Promise<void> }>,
  base_model = 'tiny',
): void {
  describe(`${name} obeys the contract of training`, () => {
    let service: Service;
    let close: () => Promise<void>;
    beforeAll(async () => {
      ({ service, close } = await open());
    });
    afterAll(() => close());

    it('creates, finds, lists and deletes models', async () => {
      const model = await service.models.create({ base_model, name: 'first' });
      expect(model).toMatchObject({ object: 'model', name: 'first', base_model, step: 0 });
      expect(await service.models.retrieve(model.id)).toEqual(model);
      expect(await service.models.create({ base_model, name: 'first', return_existing: true })).toEqual(
        model,
      );
      expect((await service.models.list()).data).toContainEqual(model);
      expect(await service.models.delete(model.id)).toEqual({
        model_id: model.id,
        deleted_checkpoints: 0,
        deleted_run: expect.any(Boolean),
      });
      expect(await failureOf(service.models.retrieve(model.id))).toMatchObject({ code: 'MODEL_NOT_FOUND' });
    });

    it('refuses a name that is taken', async () => {
      const { id } = await service.models.create({ base_model, name: 'taken' });
      expect(await failureOf(service.models.create({ base_model, name: 'taken' }))).toMatchObject({
        code: 'CONFLICT',
      });
      await service.models.delete(id);
    });

    it('gives pages', async () => {
      const ids: string[] = [];
      for (let i = 0; i < 5; i++) ids.push((await service.models.create({ base_model })).id);
      const first = await service.models.list({ limit: 2, order: 'asc' });
      expect(first.data).toHaveLength(2);
      expect(first).toMatchObject({
        object: 'list',
        has_more: true,
        first_id: first.data[0]!.id,
        last_id: first.data[1]!.id,
      });
      const rest = await service.models.list({ limit: 100, order: 'asc', after: first.last_id });
      expect([...first.data, ...rest.data].map(({ id }) => id)).toEqual(ids);
      expect((await service.models.list({ limit: 5 })).data.map(({ id }) => id)).toEqual(ids.toReversed());
      for (const id of ids) await service.models.delete(id);
    });

    it('names every fault of a request', async () => {
      const faulty = { base_modle: 'x', name: 5, return_existing: 'yes' };
      expect(await failureOf(service.models.create(faulty as never))).toMatchObject({
        code: 'INVALID_REQUEST',
        message: 'base_model: this field is required, got nothing (and 3 more faults)',
        detail: [
          { loc: ['base_model'], type: 'missing' },
          { loc: ['base_modle'], type: 'unknown_field' },
          { loc: ['name'], type: 'type' },
          { loc: ['return_existing'], type: 'type' },
        ],
      });
      expect(await failureOf(service.models.list({ limit: 101 }))).toMatchObject({
        code: 'INVALID_REQUEST',
        param: 'limit',
      });
      expect(await failureOf(service.checkpoints.delete('x', { steps: [-1] }))).toMatchObject({
        code: 'INVALID_REQUEST',
        param: 'steps.0',
      });
      const job = { model_id: 'x', trajectory_groups: [{ trajectories: [{ reward: 'high' }] }] };
      expect((await failureOf(service.train(job as never))).detail!.map(({ loc }) => loc.join('.'))).toEqual(
        expect.arrayContaining([
          'trajectory_groups.0.trajectories.0.messages_and_choices',
          'trajectory_groups.0.trajectories.0.reward',
        ]),
      );
    });

    it('keeps logs and computes their metrics', async () => {
      const { id } = await service.models.create({ base_model });
      const result = await service.models.log(id, { split: 'val', trajectory_groups: GROUPS });
      expect(result.logged_trajectories).toBe(2);
      expect(result.metrics).toMatchObject({ 'val/reward': 0.5 });
      expect(await service.models.delete(id)).toMatchObject({ deleted_run: true });
    });

    it('trains, and tells what happens', async () => {
      const { id: model_id } = await service.models.create({ base_model });
      const job = await service.train({ model_id, trajectory_groups: GROUPS });
      const events: TrainingJobEvent[] = [];
      for await (const event of job.events()) events.push(event);
      expect(events.map(({ type }) => type)).toEqual([
        'training_started',
        ...events.slice(1, -1).map(() => 'gradient_step'),
        'training_ended',
      ]);
      const result = await job.done;
      expect(job.status).toBe('completed');
      expect(result).toMatchObject({ job_id: job.id, model_id, step: 1 });
      expect(await service.trainingJobs.retrieve(job.id)).toMatchObject({
        id: job.id,
        object: 'training.job',
        model_id,
        status: 'completed',
        step: 1,
        error: null,
      });
      const { data } = await service.checkpoints.list(model_id);
      expect(data).toMatchObject([{ id: result.checkpoint_id, step: 1 }]);

      const page = await service.trainingJobs.events(job.id, { limit: 1 });
      expect(page).toMatchObject({ has_more: true, data: [{ type: 'training_started' }] });
      const more = await service.trainingJobs.events(job.id, { after: page.last_id });
      expect([...page.data, ...more.data]).toEqual(events);

      expect(await service.checkpoints.delete(model_id, { steps: [1, 7] })).toEqual({
        deleted_count: 1,
        not_found_steps: [7],
      });
      await service.models.delete(model_id);
    });

    it('lists jobs by model and status', async () => {
      const [one, other] = [
        await service.models.create({ base_model }),
        await service.models.create({ base_model }),
      ];
      const start = async (model_id: string) => {
        const job = await service.train({ model_id, trajectory_groups: GROUPS });
        await job.done;
        return job.id;
      };
      const first = await start(one.id);
      const second = await start(other.id);
      const third = await start(one.id);
      const idsOf = async (query: Parameters<typeof service.trainingJobs.list>[0]) =>
        (await service.trainingJobs.list(query)).data.map(({ id }) => id);
      expect(await idsOf({ model_id: one.id, order: 'asc' })).toEqual([first, third]);
      expect(await idsOf({ model_id: one.id, status: 'completed' })).toEqual([third, first]);
      expect(await idsOf({ model_id: one.id, status: 'failed' })).toEqual([]);
      expect(await idsOf({ model_id: one.id, order: 'asc', after: first })).toEqual([third]);
      const page = await service.trainingJobs.list({ limit: 1, model_id: one.id });
      expect(page).toMatchObject({ has_more: true, first_id: third, last_id: third });
      expect(await idsOf({ limit: 100 })).toEqual(expect.arrayContaining([first, second, third]));
      const wrong = service.trainingJobs.list({ status: 'done' as never });
      expect(await failureOf(wrong)).toMatchObject({ code: 'INVALID_REQUEST', param: 'status' });
      for (const { id } of [one, other]) await service.models.delete(id);
    });

    it('cancels', async () => {
      const { id: model_id } = await service.models.create({ base_model });
      const job = await service.train({ model_id, trajectory_groups: GROUPS });
      const end = failureOf(job.done);
      await job.cancel();
      expect(job.status).toBe('cancelled');
      expect(await end).toMatchObject({ code: 'ABORTED' });
      expect(await service.trainingJobs.retrieve(job.id)).toMatchObject({ status: 'cancelled', step: null });
      await service.models.delete(model_id);
    });

    it('does not know what is not there', async () => {
      const id = '00000000-0000-4000-8000-000000000000';
      const codes = await Promise.all(
        [
          service.models.delete(id),
          service.models.log(id, { trajectory_groups: GROUPS }),
          service.checkpoints.list(id),
          service.checkpoints.delete(id, { steps: [1] }),
          service.train({ model_id: id, trajectory_groups: GROUPS }),
          service.trainingJobs.retrieve(id),
          service.trainingJobs.events(id),
          service.trainingJobs.cancel(id),
        ].map(async (call) => (await failureOf(call)).code),
      );
      expect(codes).toEqual([...Array(5).fill('MODEL_NOT_FOUND'), ...Array(3).fill('NOT_FOUND')]);
    });
  });
}
