#!/usr/bin/env node
/** The command `onpolicy`. */
import { run } from './run.ts';

const { stdin: input, stdout: output, stderr: errors } = process;
output.on('error', () => process.exit(0)); // the reader of a pipe has closed it
process.exitCode = await run(process.argv.slice(2), { input, output, errors });
