import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const built = join(root, 'node_modules/.cache/test-drivers')

/** Compiles a driver (`test/platform/folder-driver`) and its imports, because child processes run JavaScript. Returns the path of the result. */
export function compileDriver(driver: string): string {
  const flags = [
    '--ignoreConfig',
    '--noCheck',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--types',
    'node',
    '--allowImportingTsExtensions',
    '--rewriteRelativeImportExtensions',
  ]
  const source = join(root, `${driver}.ts`)
  const out = join(built, basename(driver))
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...flags, '--rootDir', root, '--outDir', out, source], {
    cwd: root,
    stdio: 'inherit',
  })
  return join(out, `${driver}.js`)
}

export interface Driver {
  readonly child: ChildProcess
  /** Returns the complete lines that it has printed so far. */
  lines(): string[]
  /** Resolves to the exit code after all output has arrived. The code is null after a signal. */
  readonly closed: Promise<number | null>
  /** Kills the process with kill -9. Resolves when the process has ended. */
  kill(): Promise<void>
}

/** Starts a compiled driver. */
export function startDriver(file: string, args: readonly string[]): Driver {
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const closed = new Promise<number | null>(done => child.once('close', code => done(code)))
  return {
    child,
    lines: () => text.split('\n').slice(0, -1),
    closed,
    async kill() {
      child.kill('SIGKILL')
      await closed
    },
  }
}
