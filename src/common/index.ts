/** What several folders use, and what imports none of them. */
export { atField } from './at-field.ts';
export { bufferedIterator } from './buffered-iterator.ts';
export {
  flushFolder,
  ifMissing,
  isMissing,
  readText,
  rename,
  replaceFile,
  storeFailed,
  writeFlushed,
  writing,
} from './durable-files.ts';
export { LeaseScope, lease } from './lease.ts';
export { limitedSignal } from './limited-signal.ts';
export { Queue } from './queue.ts';
export { Shared } from './shared-work.ts';
export { ParserRun, type Reading, TextReader } from './text-reader.ts';
