import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { layMigrated } from './migrated-folder.ts'

/** A gateway in a separate process, as an operator runs it. */
export interface GatewayProcess {
  readonly baseUrl: string
  readonly dataDir: string
  readonly child: ChildProcess
  /** Returns its output so far. */
  output(): string
  /** Sends kill -9. Resolves when the process has ended. */
  kill(): Promise<void>
  /** Sends SIGTERM. Resolves with the exit code. */
  terminate(): Promise<number | null>
}

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const startDeadlineMs = 90_000
/** With this flag, the embedded PostgreSQL (WebAssembly) is not compiled a second time for speed. No gateway of a test runs long enough to profit. */
const quickDatabase = '--liftoff-only'

/**
 * Starts dist/main.js, or another program in its place, on a free port and waits until it listens. A `dataDir` of a dead process is used unchanged. An
 * empty one gets a migrated database, unless `env` names another folder or database. Node loads the module `preload` first.
 */
export async function startProcess(
  env: Readonly<Record<string, string>>,
  dataDir = mkdtempSync(join(tmpdir(), 'brigade-process-')),
  program = main,
  preload?: string,
): Promise<GatewayProcess> {
  const isOnCopy = env['DATA_DIR'] === undefined && env['DATABASE_URL'] === undefined
  if (isOnCopy) layMigrated(dataDir)
  const options = [...(isOnCopy ? [quickDatabase] : []), ...(preload === undefined ? [] : ['--import', preload])]
  const child = spawn(process.execPath, [...options, program], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: dataDir,
      PORT: '0',
      SANDBOX: 'off',
      LOCAL_SERVERS: 'off',
      PRICE_FEED_URL: 'off',
      LOG_LEVEL: 'warn',
      DATA_DIR: dataDir,
      ...env,
    },
    cwd: dataDir,
    stdio: [program === main ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  let text = ''
  const exited = new Promise<number | null>(resolve => child.once('exit', code => resolve(code)))
  const baseUrl = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no start within ${startDeadlineMs} ms:\n${text}`)), startDeadlineMs)
    const read = (chunk: Buffer): void => {
      text += chunk.toString()
      const url = /listens on (http:\/\/\S+)/.exec(text)?.[1]
      if (url === undefined) return
      clearTimeout(timer)
      resolve(url)
    }
    child.stdout?.on('data', read)
    child.stderr?.on('data', read)
    void exited.then(code => reject(new Error(`exit ${code} before it listened:\n${text}`)))
  })
  return {
    baseUrl,
    dataDir,
    child,
    output: () => text,
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
    terminate() {
      child.kill('SIGTERM')
      return exited
    },
  }
}

/** Returns the process ids of the workers, in no particular order. */
export function workersOf({ child }: GatewayProcess): number[] {
  try {
    const text = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
    return text.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/** Writes an operator's file with one provider `fixed` at `url`. The prompt of `fixed-model` is free, and a million output tokens cost ₹100. */
export function fixedCostConfig(url: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'brigade-config-')), 'brigade.config.json')
  const route = { provider: 'fixed', input_inr_per_mtok: 0, output_inr_per_mtok: 100, source: 'test', as_of: '2026-01-01' }
  writeFileSync(
    file,
    JSON.stringify({
      providers: [{ id: 'fixed', base_url: url, auth: 'none', residency: 'global' }],
      models: [
        { id: 'fixed-model', kind: 'chat', context_length: 100_000, routes: [route] },
        { id: 'thinking-model', kind: 'chat', context_length: 100_000, reasoning: true, routes: [route] },
      ],
    }),
  )
  return file
}
