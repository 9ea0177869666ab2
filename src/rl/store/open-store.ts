/** A folder -> its store, one per folder in this process. */
import path from 'node:path';
import type { Tracker } from '../../protocol/index.ts';
import type { ProblemListener } from './home.ts';
import { Store } from './store.ts';

/** Options of {@link openStore}. */
export type StoreOptions = {
  /** Called for damaged files, which are skipped, and for failures of the tracker. */
  readonly onProblem?: ProblemListener | undefined;
  /** Also receives the metrics of all runs. */
  readonly tracker?: Tracker | null | undefined;
};

/** A store in use. */
export type OpenStore = {
  readonly store: Store;
  /** Ends this use. The last one releases the folder, so that other processes can write. */
  close(): Promise<void>;
};

const opened = new Map<string, { readonly store: Store; userCount: number }>();

/** Opens a home folder. All callers in this process share one store per folder. Does not touch the disk. */
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
