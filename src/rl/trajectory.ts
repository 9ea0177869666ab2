/** Training data of a caller, in the form of the wire -> groups of attempts, each with conversations and a reward. */

import type { TrajectoryChoice as Choice, Message } from '../protocol/index.ts';

/** A message of the conversation. Additional fields are passed to the template. */
export type TrajectoryMessage =
  | Message
  | { readonly role: string; readonly content?: unknown; readonly [field: string]: unknown };

/** A choice of a completion response. Training uses its token ids and log-probabilities, but no text. */
export type TrajectoryChoice = Omit<Choice, 'message'> & { readonly message: TrajectoryMessage };

/** Messages are context; choices are trained on. */
export type MessagesAndChoices = readonly (TrajectoryMessage | TrajectoryChoice)[];

/** Another conversation of the same attempt, trained with the same reward. */
export type History = {
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
  /** Steps of the model at the first and at the last token. */
  readonly initial_policy_version?: number | null | undefined;
  readonly final_policy_version?: number | null | undefined;
};

/** Attempts at one task. Rewards are relative to the group. */
export type TrajectoryGroup = { readonly trajectories: readonly Trajectory[] };

/** Returns the conversations of an attempt, its own first. `tools`: those of the conversation, else of the attempt. */
export function conversationsOf({
  messages_and_choices,
  tools,
  additional_histories,
}: Pick<Trajectory, 'messages_and_choices' | 'tools' | 'additional_histories'>): {
  readonly entries: MessagesAndChoices;
  readonly tools: readonly unknown[] | null;
}[] {
  const own = { messages_and_choices, tools };
  return [own, ...(additional_histories ?? [])].map((history) => ({
    entries: history.messages_and_choices,
    tools: history.tools ?? tools ?? null,
  }));
}

/** Returns true if an entry is a choice, which has a message. */
export function isChoice(entry: TrajectoryMessage | TrajectoryChoice): entry is TrajectoryChoice {
  return (
    typeof entry === 'object' &&
    entry !== null &&
    typeof (entry as TrajectoryChoice).message === 'object' &&
    (entry as TrajectoryChoice).message !== null
  );
}

/** Parses ids from tokens written as `token_id:N`. Returns null if one of them is written as text. */
export function idsFromLogprobs(
  content: readonly { readonly token?: string | undefined }[] | null,
): number[] | null {
  const ids = content?.map(({ token }) => Number(/^token_id:(\d+)$/.exec(token ?? '')?.[1] ?? Number.NaN));
  return ids?.some(Number.isNaN) ? null : (ids ?? null);
}
