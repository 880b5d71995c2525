#!/usr/bin/env node
import { isInstalledPackage, useHomeFolder } from '../platform/config.ts'
import { brigadeProgram } from './program.ts'
import { endWithReader, runProgram } from './run-program.ts'

// The commands of an installed package find the data that `brigade-gateway` keeps. In a checkout they find that of `npm start`.
if (isInstalledPackage(import.meta.url)) useHomeFolder()
endWithReader()
const failedWith = await runProgram(brigadeProgram(), process.argv)
if (failedWith !== null) process.exitCode = failedWith
