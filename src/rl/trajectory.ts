/** What a caller hands in to be trained on, as the wire has it: groups of attempts, each a conversation and a reward. */

import type { TrajectoryChoice as Choice, Message } from '../protocol/index.ts';

/** A message of the conversation. Additional fields are passed to the template. */
export type TrajectoryMessage =
  | Message
  | { readonly role: string; readonly content?: unknown; readonly [field: string]: unknown };

/** A choice of a completion response. Training uses its token ids and log-probabilities, not its text. */
export type TrajectoryChoice = Omit<Choice, 'message'> & { readonly message: TrajectoryMessage };

/** Messages are context; choices are trained on. */
export type MessagesAndChoices = readonly (TrajectoryMessage | TrajectoryChoice)[];

/** Another conversation of the same attempt, trained with the same reward. */
export type History =
  | MessagesAndChoices
  | {
      readonly messages_and_choices: MessagesAndChoices;
      readonly tools?: readonly unknown[] | null | undefined;
    };

/** One attempt. */
export type Trajectory = {
  readonly messages_and_choices: MessagesAndChoices;
  readonly reward: number;
  readonly tools?: readonly unknown[] | null | undefined;
  readonly additional_histories?: readonly History[] | null | undefined;
  readonly metrics?: Readonly<Record<string, unknown>> | null | undefined;
};

/** Attempts at one task. Rewards are relative to the group. */
export type TrajectoryGroup = { readonly trajectories: readonly Trajectory[] };

/** The conversations of an attempt, its own first. `tools`: those of the conversation, else of the attempt. */
export function conversationsOf({
  messages_and_choices,
  tools,
  additional_histories,
}: Pick<Trajectory, 'messages_and_choices' | 'tools' | 'additional_histories'>): {
  readonly entries: MessagesAndChoices;
  readonly tools: readonly unknown[] | null;
}[] {
  const histories: History[] = [messages_and_choices, ...(additional_histories ?? [])];
  return histories.map((history) =>
    'messages_and_choices' in history
      ? { entries: history.messages_and_choices, tools: history.tools ?? tools ?? null }
      : { entries: history, tools: tools ?? null },
  );
}

/** Whether an entry is a choice: it has a message. */
export function isChoice(entry: TrajectoryMessage | TrajectoryChoice): entry is TrajectoryChoice {
  return (
    typeof entry === 'object' &&
    entry !== null &&
    typeof (entry as TrajectoryChoice).message === 'object' &&
    (entry as TrajectoryChoice).message !== null
  );
}

/** Ids out of tokens written as `token_id:N`; null when any is written as text. */
export function idsFromLogprobs(
  content: readonly { readonly token?: string | undefined }[] | null,
): number[] | null {
  const ids = content?.map(({ token }) => Number(/^token_id:(\d+)$/.exec(token ?? '')?.[1] ?? Number.NaN));
  return ids?.some(Number.isNaN) ? null : (ids ?? null);
}
