// Loaded before a program that Electron would start as a `utilityProcess`: gives it `process.parentPort`, over a fork or a worker.
import { parentPort } from 'node:worker_threads';

process.parentPort = {
  postMessage: (message) => (parentPort ? parentPort.postMessage(message) : process.send(message)),
  on: (event, listener) => (parentPort ?? process).on(event, (data) => listener({ data })),
};
