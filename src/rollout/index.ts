/** Any client's requests -> recorded trajectories. */
export { type Recorder, type RecorderOptions, type RecordingEnd, record } from './recorder.ts';
