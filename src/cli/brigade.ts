#!/usr/bin/env node
import { brigadeProgram } from './program.ts'
import { endWithReader, runProgram } from './run-program.ts'

endWithReader()
const failedWith = await runProgram(brigadeProgram(), process.argv)
if (failedWith !== null) process.exitCode = failedWith
