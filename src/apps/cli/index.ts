#!/usr/bin/env node
/** The arguments of this process -> the command `onpolicy`, run, and its exit code. */
import { run } from './run.ts';

const { stdin: input, stdout: output, stderr: errors } = process;
output.on('error', () => process.exit(0)); // the reader of a pipe has closed it
process.exitCode = await run(process.argv.slice(2), { input, output, errors });
