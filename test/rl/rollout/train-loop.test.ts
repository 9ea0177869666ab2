/** A loop on a service in memory: the order of tasks, evaluations, when it ends, what it keeps, and how it goes on. */
import { describe, expect, it } from 'vitest';
import type {
  LogRequest,
  MetricValues,
  TrainingJobRequest,
  Trajectory,
} from '../../../src/protocol/index.ts';
import type { LoopEvent, TrainableService, TrainLoopOptions } from '../../../src/rl/rollout/loop-options.ts';
import { trainLoop } from '../../../src/rl/rollout/train-loop.ts';
import { connect } from '../../../src/serve/http/index.ts';

const trajectory = (reward: number): Trajectory => ({ messages_and_choices: [], reward });

/** Records what the loop asks for. Its state outlives a loop, like a home folder. */
class MemoryTrainer {
  step = 0;
  steps: number[] = [];
  readonly trained: TrainingJobRequest[] = [];
  readonly logged: { step: number; source: string; metrics: MetricValues }[] = [];
  failAt: number | null = null;

  get service(): TrainableService {
    const service = {
      models: {
        retrieve: async () => ({ step: this.step }),
        log: async (_: string, { split, trajectory_groups }: LogRequest) => {
          const all = trajectory_groups.flatMap(({ trajectories }) => trajectories);
          const reward = all.reduce((sum, one) => sum + one.reward, 0) / all.length;
          const metrics = all.length > 0 ? { [`${split}/reward`]: reward } : {};
          this.logged.push({ step: this.step, source: split!, metrics });
          return { logged_trajectories: all.length, metrics };
        },
      },
      checkpoints: {
        list: async () => ({ data: [...this.steps].reverse().map((step) => ({ step })), has_more: false }),
        folder: async (_: string, step: number) => `/here/${step}`,
        delete: async (_: string, { steps }: { steps: readonly number[] }) => {
          this.steps = this.steps.filter((step) => !steps.includes(step));
        },
      },
      train: async (request: TrainingJobRequest) => {
        if (this.failAt === this.step) throw new Error('killed');
        this.trained.push(request);
        this.steps.push(++this.step);
        return { done: Promise.resolve({ step: this.step, metrics: {} }) };
      },
      runs: {
        metrics: async function* (this: void) {
          yield* logged;
        },
      },
    };
    const { logged } = this;
    return service as unknown as TrainableService;
  }
}

const TASKS = ['a', 'b', 'c', 'd', 'e'];

/** A loop whose rollouts note what they were given. */
function loopOn(trainer: MemoryTrainer, more: Partial<TrainLoopOptions<string>> = {}) {
  const seen: { step: number; task: string; seed: number }[] = [];
  const events: LoopEvent[] = [];
  const options: TrainLoopOptions<string> = {
    service: trainer.service,
    model: 'm',
    tasks: TASKS,
    groupsPerStep: 2,
    groupSize: 2,
    until: { steps: 4 },
    rollout: (task, { attempt, seed, step, model }) => {
      expect(model).toBe(`m@${step}`);
      seen.push({ step, task, seed });
      return trajectory(attempt);
    },
    onEvent: (event) => events.push(event),
    ...more,
  };
  return { options, seen, events, run: () => trainLoop(options) };
}

/** Writes down what a server gets; its requests and answers are those of vLLM's documentation. */
function vllm() {
  const got: string[] = [];
  const fetch = async (url: string | URL | Request, init?: RequestInit) => {
    const { pathname } = new URL(String(url));
    const body = JSON.parse(String(init?.body));
    got.push(`${pathname.slice('/v1/'.length)} ${Object.values(body).join(' ')}`);
    const isKnown =
      pathname !== '/v1/unload_lora_adapter' ||
      got.includes(`load_lora_adapter ${body.lora_name} /there/${body.lora_name.at(-1)}`);
    if (!isKnown) return Response.json({ error: { message: 'not found', code: 404 } }, { status: 404 });
    return new Response(`Success: LoRA adapter '${body.lora_name}' added successfully.`);
  };
  return {
    got,
    service: connect({ baseUrl: 'http://vllm.test/v1', fetch: fetch as typeof globalThis.fetch }),
  };
}

describe('a sampler', () => {
  it('gets each step before rollouts ask for it, and gives it back when none does', async () => {
    const { got, service } = vllm();
    const models: string[] = [];
    const { run } = loopOn(new MemoryTrainer(), {
      until: { steps: 2 },
      sampler: service,
      samplerModel: 'base',
      samplerPath: (folder) => folder.replace('/here', '/there'),
      rollout: (_, { attempt, model }) => {
        models.push(model);
        return trajectory(attempt);
      },
    });
    await run();
    expect(models).toEqual(['base', 'base', 'base', 'base', ...Array(4).fill('m-step-1')]);
    expect(got).toEqual([
      'unload_lora_adapter m-step-1',
      'load_lora_adapter m-step-1 /there/1',
      'unload_lora_adapter m-step-2',
      'load_lora_adapter m-step-2 /there/2',
      'unload_lora_adapter m-step-1',
    ]);
  });

  it.each([
    [{ samplerModel: 'base' }, 'samplerModel'],
    [{ sampler: vllm().service }, 'samplerModel'],
    [{ sampler: {} as never, samplerModel: 'base' }, 'sampler'],
    [{ maxStale: -1 }, 'maxStale'],
  ])('%# is refused when it could not work', async (more, name) => {
    await expect(loopOn(new MemoryTrainer(), more).run()).rejects.toThrow(name);
  });
});

describe('rollouts of later steps', () => {
  it('begin while a step trains, with a step that is at most `maxStale` older', async () => {
    const trainer = new MemoryTrainer();
    const begun: number[] = [];
    const { run } = loopOn(trainer, {
      maxStale: 2,
      until: { steps: 5 },
      rollout: (_, { attempt, step }) => {
        begun.push(step);
        return trajectory(attempt);
      },
    });
    await run();
    expect(begun.slice(0, 12)).toEqual(Array(12).fill(0)); // three jobs' worth before the first has trained
    for (const [step, { trajectory_groups, experimental_config }] of trainer.trained.entries()) {
      expect(experimental_config).toMatchObject({
        precalculate_logprobs: true,
        truncated_importance_sampling: 2,
      });
      for (const { initial_policy_version, metrics } of trajectory_groups.flatMap(
        (one) => one.trajectories,
      )) {
        const age = step - initial_policy_version!;
        expect(age).toBe(Math.min(step, 2));
        expect(metrics).toEqual({ stale_steps: age });
      }
    }
  });

  it('use the tasks that they would have had one after the other', async () => {
    const [apart, ahead] = [loopOn(new MemoryTrainer()), loopOn(new MemoryTrainer(), { maxStale: 1 })];
    await apart.run();
    await ahead.run();
    const tasks = ({ seen }: typeof apart) => seen.map(({ task, seed }) => `${task} ${seed}`);
    expect(tasks(ahead).slice(0, tasks(apart).length)).toEqual(tasks(apart));
  });
});

describe('checkpoints that are kept', () => {
  const turn = () => new Promise((resolve) => setTimeout(resolve, 2));

  it.each([
    [1, 1],
    [2, 1],
    [2, 2],
    [3, 2],
  ])(
    'with maxStale %i and keepCheckpoints %i are those of rollouts that still ask them, too',
    async (maxStale, keepCheckpoints) => {
      const trainer = new MemoryTrainer();
      const asked: number[] = [];
      const { run } = loopOn(trainer, {
        maxStale,
        keepCheckpoints,
        until: { steps: 8 },
        maxFailures: 0,
        rollout: async (_, { attempt, step, signal }) => {
          for (let turns = 0; turns < 5 * maxStale && !signal.aborted; turns++) {
            if (step > 0) expect(trainer.steps).toContain(step);
            asked.push(step);
            await turn();
          }
          return trajectory(attempt);
        },
      });
      await run();
      expect(new Set(asked).size).toBeGreaterThan(3);
      expect(trainer.steps).toEqual([7, 8].slice(-keepCheckpoints)); // once nothing asks any more
    },
  );

  it('are the one that jobs are compared with, too', async () => {
    const trainer = new MemoryTrainer();
    trainer.step = 1;
    trainer.steps = [1];
    const config = { kl_penalty_coef: 0.1, kl_penalty_reference_step: 1 };
    await loopOn(trainer, { config, keepCheckpoints: 1, until: { steps: 6 } }).run();
    expect(trainer.steps).toEqual([1, 6]);
  });

  it('are those that a lag reaches, too', async () => {
    const trainer = new MemoryTrainer();
    const config = { kl_penalty_coef: 0.1, kl_penalty_step_lag: 2 };
    await loopOn(trainer, { config, keepCheckpoints: 1, until: { steps: 6 } }).run();
    expect(trainer.steps).toEqual([4, 5, 6]);
  });
});

const held = (reward: (step: number) => number) => ({
  tasks: ['x', 'y'],
  every: 2,
  rollout: (_: string, { step }: { step: number }) => trajectory(reward(step)),
});

describe('the tasks of a loop', () => {
  it('come in a random order, all of them before one comes again', async () => {
    const { run, seen } = loopOn(new MemoryTrainer(), { until: { steps: 5 } });
    expect(await run()).toEqual({ reason: 'steps', step: 5, best: null, evaluations: [] });
    const tasks = seen.filter((_, i) => i % 2 === 0).map(({ task }) => task);
    expect(tasks.slice(0, 5).toSorted()).toEqual(TASKS);
    expect(tasks.slice(5).toSorted()).toEqual(TASKS);
    expect(tasks.slice(5)).not.toEqual(tasks.slice(0, 5));
    expect(new Set(seen.map(({ seed }) => seed)).size).toBe(seen.length);
  });

  it('are the same when the loop goes on after a failure at any step', async () => {
    const whole = loopOn(new MemoryTrainer());
    await whole.run();
    for (let failAt = 0; failAt < 4; failAt++) {
      const trainer = new MemoryTrainer();
      trainer.failAt = failAt;
      const first = loopOn(trainer);
      await expect(first.run()).rejects.toThrow('killed');
      trainer.failAt = null;
      const second = loopOn(trainer);
      await second.run();
      const kept = first.seen.filter(({ step }) => step < failAt);
      expect([...kept, ...second.seen]).toEqual(whole.seen);
    }
  });

  it('depend on the seed', async () => {
    const [one, other] = [loopOn(new MemoryTrainer()), loopOn(new MemoryTrainer(), { seed: 1 })];
    await one.run();
    await other.run();
    expect(one.seen).not.toEqual(other.seen);
  });

  it('without a signal are replaced by others, as often as `refill` allows', async () => {
    const trainer = new MemoryTrainer();
    const teaches = (task: string) => task === 'a' || task === 'b';
    const { run } = loopOn(trainer, {
      refill: 50,
      until: { steps: 1 },
      rollout: (task, { attempt }) => trajectory(teaches(task) ? attempt : 1),
    });
    await run();
    expect(trainer.trained[0]!.trajectory_groups).toHaveLength(2);
    const none = new MemoryTrainer();
    const hopeless = loopOn(none, { refill: 3, until: { steps: 1 }, rollout: () => trajectory(1) });
    await hopeless.run();
    expect(none.trained[0]!.trajectory_groups).toEqual([]);
  });
});

describe('evaluations', () => {
  it('come before the first step, then at every so many, and after the last', async () => {
    const trainer = new MemoryTrainer();
    const { run, events } = loopOn(trainer, { evaluate: held((step) => step), until: { steps: 5 } });
    const result = await run();
    expect(result.evaluations.map(({ step, reward }) => [step, reward])).toEqual([
      [0, 0],
      [2, 2],
      [4, 4],
      [5, 5],
    ]);
    expect(result.best?.step).toBe(5);
    expect(events.map(({ type, step }) => `${type} ${step}`)).toEqual([
      'evaluation 0',
      'step 1',
      'step 2',
      'evaluation 2',
      'step 3',
      'step 4',
      'evaluation 4',
      'step 5',
      'evaluation 5',
    ]);
    expect(trainer.logged.every(({ source }) => source === 'val')).toBe(true);
  });

  it.each<
    [name: string, until: TrainLoopOptions<string>['until'], reason: string, step: number, best: number]
  >([
    ['a reward that is reached', { steps: 20, reward: 5 }, 'reward', 6, 6],
    ['patience', { steps: 20, patience: 2 }, 'patience', 12, 8],
    ['steps', { steps: 3, reward: 5, patience: 2 }, 'steps', 3, 3],
  ])('end the loop: %s', async (_, until, reason, step, best) => {
    const evaluate = held((at) => Math.min(at, 8));
    const trainer = new MemoryTrainer();
    const result = await loopOn(trainer, { evaluate, until }).run();
    expect([result.reason, result.step, result.best?.step]).toEqual([reason, step, best]);
    const again = await loopOn(trainer, { evaluate, until }).run(); // it has ended: nothing is left to do
    expect([again.reason, again.step, again.best?.step]).toEqual([reason, step, best]);
    expect(trainer.trained).toHaveLength(step);
  });

  it('choose the checkpoint that is kept beside the newest ones', async () => {
    const trainer = new MemoryTrainer();
    await loopOn(trainer, {
      evaluate: held((step) => (step === 2 ? 9 : 0)),
      until: { steps: 7 },
      keepCheckpoints: 2,
    }).run();
    expect(trainer.steps).toEqual([2, 6, 7]);
  });

  it('that fail throughout end the loop', async () => {
    const evaluate = {
      tasks: ['x'],
      rollout: () => {
        throw new Error('broken');
      },
    };
    const { run } = loopOn(new MemoryTrainer(), { evaluate, maxFailures: 1 });
    await expect(run()).rejects.toThrow('every attempt of the evaluation failed');
  });
});

describe('options', () => {
  it.each<[Partial<TrainLoopOptions<string>>, string]>([
    [{ tasks: [] }, 'tasks: expected a non-empty list, got an empty list'],
    [{ until: {} as never }, 'until.steps: this field is required, got nothing'],
    [{ until: { steps: 1, reward: 1 } }, 'until.reward: expected no value without `evaluate`, got 1'],
    [
      { evaluate: held(() => 0), until: { steps: 1, patience: 0 } },
      'until.patience: expected an integer >= 1',
    ],
    [{ evaluate: { tasks: [] } }, 'evaluate.tasks: expected a non-empty list'],
    [{ evaluate: { tasks: ['x'], every: 0 } }, 'evaluate.every: expected an integer >= 1, got 0'],
    [{ groupsPerStep: 0 }, 'groupsPerStep: expected an integer >= 1, got 0'],
    [{ keepCheckpoints: 0 }, 'keepCheckpoints: expected an integer >= 1, got 0'],
    [{ service: {} as never }, 'service.train: this field is required'],
    [{ groupSize: 0 }, 'groupSize: expected an integer >= 1, got 0'],
  ])('%#: wrong ones are named', async (more, message) => {
    await expect(loopOn(new MemoryTrainer(), more).run()).rejects.toThrow(message);
  });
});
