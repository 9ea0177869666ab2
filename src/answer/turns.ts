/** Work that can wait -> the next turn of the event loop, all of it together. */

let waiting: (() => void)[] = [];

/** Calls `work` in the next turn. Must not throw. */
export function inNextTurn(work: () => void): void {
  if (waiting.push(work) === 1) setImmediate(run);
}

function run(): void {
  const ready = waiting;
  waiting = [];
  for (const work of ready) work();
}
