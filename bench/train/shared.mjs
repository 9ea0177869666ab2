// Settings -> time of one row in which answers share a prompt, and of one answer with its own prompt.
import { openTrainer } from '../../dist/rl/trainer.js';
import { report, settingsOfProcess } from '../lib/measure.mjs';
import { passes, sharedRow } from './rows.mjs';

const { model, threads, rounds, answers = 16, promptTokens = 512, answerTokens = 64 } = settingsOfProcess();
const trainer = await openTrainer({ model, gpu: false, threads });
const together = sharedRow(promptTokens, answers, answerTokens);
const alone = sharedRow(promptTokens, 1, answerTokens);
const total = ({ forwardMs, backwardMs }) => forwardMs + backwardMs;
await passes(trainer, alone);
const sharedMs = [];
const oneMs = [];
for (let round = 0; round < rounds; round++) {
  oneMs.push(total(await passes(trainer, alone)));
  sharedMs.push(total(await passes(trainer, together)));
}
await trainer.close();
report({ sharedMs, oneMs, answers, promptTokens, answerTokens });
