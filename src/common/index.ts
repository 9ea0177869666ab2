/** What several folders use, and what imports none of them. */
export { onAbort, pending, untilAborted } from './abort.ts';
export { atField } from './at-field.ts';
export { barOf, drawnLine } from './bar.ts';
export { bufferedIterator } from './buffered-iterator.ts';
export { causeCodes, causes, neverSent } from './causes.ts';
export {
  flushFolder,
  ifMissing,
  isMissing,
  makeFolder,
  ownFolder,
  readText,
  rename,
  replaceFile,
  storeFailed,
  writeFlushed,
  writing,
} from './durable-files.ts';
export { isObject, parseJson } from './json.ts';
export { LeaseScope, lease } from './lease.ts';
export { limitedSignal } from './limited-signal.ts';
export { LineWriter } from './line-writer.ts';
export { mib } from './mib.ts';
export { packageFile, packageVersion, requirePackage } from './package-files.ts';
export { allOf, pageOf } from './page.ts';
export { type Message, Peer, RemoteStream } from './peer.ts';
export { isDead, type ProcessIdentity, processWord, runsHere, thisProcess } from './process-identity.ts';
export { Queue } from './queue.ts';
export { seedOf, shuffled } from './seeds.ts';
export { Shared } from './shared-work.ts';
export { ParserRun, type Reading, TextReader } from './text-reader.ts';
