#!/usr/bin/env node
/** The command of the installed package. Without words it serves a gateway with its data in ~/.brigade; with words it is `brigade`. Decision 0763 says why. */
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { useHomeFolder } from '../platform/config.ts'
import { brigadeProgram } from './program.ts'
import { endWithReader, runProgram } from './run-program.ts'

/** The same flags as in scripts/run.mjs and the Dockerfile. Node reads them only when a process starts. */
const nodeFlags = ['--max-semi-space-size=32', '--enable-source-maps']

/** Serves in a child process, and passes signals on. Resolves with the exit code of the child, or 128 + n after signal n. */
function serve(): Promise<number> {
  return new Promise((done, failed) => {
    const child = spawn(process.execPath, [...nodeFlags, fileURLToPath(new URL('../main.js', import.meta.url))], { stdio: 'inherit' })
    process.on('SIGTERM', () => child.kill('SIGTERM'))
    process.on('SIGHUP', () => child.kill('SIGHUP'))
    // A terminal sends Ctrl-C to both processes. A second signal would stop the child before its calls end.
    process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'))
    child.once('error', failed)
    child.once('exit', (code, signal) => done(code ?? 128 + (signal === null ? 0 : constants.signals[signal])))
  })
}

useHomeFolder()
if (process.argv.length === 2) process.exitCode = await serve()
else {
  endWithReader()
  const failedWith = await runProgram(brigadeProgram(), process.argv)
  if (failedWith !== null) process.exitCode = failedWith
}
