import { type ChildProcess, spawn } from 'node:child_process'

/** A running program and its output so far. */
export interface StartedProgram {
  readonly child: ChildProcess
  out(): string
  bytes(): Buffer
  err(): string
  /** Resolves with the exit code, or null after a signal. Rejects when the program cannot be started. */
  readonly ended: Promise<number | null>
}

/** Where and how a program is started. */
export interface StartOptions {
  readonly cwd?: string
  /** Its whole environment except PATH. */
  readonly env: Readonly<Record<string, string>>
  /** Its whole input. With `open`, the test writes and ends the input. Left out: no input. */
  readonly stdin?: string | Buffer | 'open'
  readonly timeoutMs?: number
}

/** Starts a program. From the environment of this process it gets only PATH. */
export function startProgram(program: string, args: readonly string[], { cwd, env, stdin, timeoutMs }: StartOptions): StartedProgram {
  const child = spawn(program, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
  })
  const chunks: Buffer[] = []
  let err = ''
  child.stdout?.on('data', chunk => chunks.push(chunk))
  child.stderr?.on('data', chunk => {
    err += String(chunk)
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (stdin !== 'open') child.stdin?.end(stdin)
  const bytes = (): Buffer => Buffer.concat(chunks)
  return { child, bytes, out: () => bytes().toString(), err: () => err, ended }
}
