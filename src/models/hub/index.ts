/** References to the hub -> files: found, downloaded, listed, checked, or only their headers. */
export type { Candidate } from './choose.ts';
export { downloadFile, networkReason, type Progress } from './download-file.ts';
export { type Download, type DownloadCheck, type DownloadsResource, downloadsResource } from './downloads.ts';
export {
  aborted,
  downloadFailed,
  type FindOptions,
  type FoundModel,
  fetchGguf,
  findRemote,
} from './gguf-files.ts';
export { type ListedFile, listFiles } from './list-files.ts';
export { readNote, writeNote } from './notes.ts';
export { fileAddress, parseReference, uriOf } from './reference.ts';
export { fetchHeader } from './remote-header.ts';
