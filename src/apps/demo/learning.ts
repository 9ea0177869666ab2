/** A runtime -> the embedded model, trained by reinforcement to tell stories about the requested subject. Part of the demo. */
import type { Runtime } from '../../index.ts';

const ANIMALS = ['dog', 'cat', 'fox', 'bear', 'lion', 'horse', 'sheep', 'rabbit', 'cow'];
const TASKS = 10;
const ANSWERS = 8;

/** Functions that display the progress of learning, called in this order. */
export type LearningView = {
  readonly example: (when: 'before' | 'after', question: string, answer: string) => void;
  /** Mean reward of a round, 0 to 1. */
  readonly round: (round: number, reward: number) => void;
};

/** Trains for `rounds` rounds of sampling, scoring and one optimizer step. */
export async function learn(runtime: Runtime, rounds: number, view: LearningView): Promise<void> {
  const model = await runtime.models.create({ base_model: 'onpolicy-tiny' });
  const sentence = { model: model.id, stop: '.', max_tokens: 32 };
  const show = async (when: 'before' | 'after'): Promise<void> => {
    const messages = ask('wolf'); // wolves are never trained on
    const { choices } = await runtime.createCompletion({ ...sentence, messages, temperature: 0 });
    view.example(when, messages[0]!.content, choices[0]?.message.content ?? '');
  };
  const attempt = async () => {
    const animal = random(ANIMALS);
    const messages = ask(animal);
    const sampled = { ...sentence, messages, n: ANSWERS, logprobs: true, return_token_ids: true };
    const { choices } = await runtime.createCompletion(sampled);
    const trajectories = choices.map((choice) => ({
      messages_and_choices: [...messages, choice],
      reward: choice.message.content?.includes(` ${animal} named`) ? 1 : 0,
    }));
    return { trajectories };
  };
  await show('before');
  for (let round = 1; round <= rounds; round++) {
    const trajectory_groups = await Promise.all(Array.from({ length: TASKS }, attempt));
    const experimental_config = { learning_rate: 1e-3 };
    const job = await runtime.train({ model_id: model.id, trajectory_groups, experimental_config });
    const { metrics } = await job.done;
    view.round(round, metrics['train/reward'] ?? 0);
  }
  await show('after');
}

function ask(animal: string): { role: 'user'; content: string }[] {
  return [{ role: 'user', content: `Tell me a ${animal} story.` }];
}

function random<T>(list: readonly T[]): T {
  return list[Math.floor(Math.random() * list.length)]!;
}
