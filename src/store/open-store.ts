/** A folder -> its store: one per folder in this process, whoever asks. */
import path from 'node:path';
import type { ProblemListener } from './home.ts';
import { Store } from './store.ts';
import type { Tracker } from './tracker.ts';

/** Options of {@link openStore}. */
export type StoreOptions = {
  /** Hears of damaged files, which are skipped, and of a tracker that fails. */
  readonly onProblem?: ProblemListener | undefined;
  /** Gets the runs as well. */
  readonly tracker?: Tracker | undefined;
};

/** A store and the right to use it. */
export type OpenStore = {
  readonly store: Store;
  /** Gives it back. The last one to do so lets other processes write. */
  close(): Promise<void>;
};

const opened = new Map<string, { readonly store: Store; userCount: number }>();

/** Opens a home folder; everything in this process shares one store per folder. Touches nothing on the disk. */
export function openStore(folder: string, { onProblem, tracker }: StoreOptions = {}): OpenStore {
  const key = path.resolve(folder);
  const entry = opened.get(key) ?? { store: new Store(key), userCount: 0 };
  opened.set(key, entry);
  entry.userCount++;
  const { store } = entry;
  if (onProblem) store.listeners.add(onProblem);
  if (tracker) store.runs.tracker = tracker;
  let closing: Promise<void> | null = null;
  const close = async () => {
    if (onProblem) store.listeners.delete(onProblem);
    entry.userCount--;
    if (entry.userCount > 0) return;
    opened.delete(key);
    await store.close();
  };
  return {
    store,
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}
