/** What several folders use and what knows of none of them. */
export { iterateBatches } from './batches.ts';
export { flushFolder, replaceFile, storeFailed, writeFlushed } from './durable-files.ts';
export { ParserRun, type Reading, TextReader } from './text-reader.ts';
