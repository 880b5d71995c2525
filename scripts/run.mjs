/** `node scripts/run.mjs <subcommand> [args]`: makes the checkout ready, then runs `brigade <subcommand>` from dist/. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ensure } from './ensure.mjs'
import { root, runAsMain, runNode } from './paths.mjs'

/** Runs a program of dist/ on this terminal with .env read first (the environment wins), and ends with its exit code. */
export async function runBuilt(program, args) {
  ensure()
  const dotEnv = join(root, '.env')
  if (existsSync(dotEnv)) process.loadEnvFile(dotEnv)
  process.exitCode = await runNode(['--enable-source-maps', join(root, 'dist', program), ...args], { cwd: process.cwd() })
}

runAsMain(import.meta.url, () => runBuilt('cli/brigade.js', process.argv.slice(2)))
