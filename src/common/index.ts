/** Helpers that several folders use -> one import. This folder imports none of the others. */
export { onAbort, pending, untilAborted } from './abort.ts';
export { atField } from './at-field.ts';
export { barOf, drawnLine } from './bar.ts';
export { bufferedIterator } from './buffered-iterator.ts';
export { causeCodes, causes, neverSent } from './causes.ts';
export { clip, describe } from './describe.ts';
export {
  flushFolder,
  ifMissing,
  isMissing,
  makeFolder,
  ownFolder,
  publishFolder,
  readText,
  rename,
  replaceFile,
  replaceWith,
  storeFailed,
  writeFlushed,
  writing,
} from './files/durable-files.ts';
export { appendLine, LineWriter } from './files/lines.ts';
export { DamagedFile, readSealed, writeSealed } from './files/sealed-file.ts';
export { Histogram, type HistogramData, sumHistograms } from './histogram.ts';
export { isObject, parseJson } from './json.ts';
export { LeaseScope, lease } from './lease.ts';
export { limitedSignal } from './limited-signal.ts';
export { mib } from './mib.ts';
export { packageFile, packageVersion, requirePackage } from './package-files.ts';
export { allOf, pageOf } from './page.ts';
export { type Message, Peer, RemoteStream } from './peer.ts';
export { isDead, type ProcessIdentity, processWord, runsHere, thisProcess } from './process-identity.ts';
export { Queue } from './queue.ts';
export { seedOf, shuffled } from './seeds.ts';
export { Shared } from './shared-work.ts';
export { watched } from './watched.ts';
