import { vi } from 'vitest'
import { brigadeProgram } from '../../src/cli/program.ts'
import { runProgram } from '../../src/cli/run-program.ts'

/** What a command printed, and how it ended. */
export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly bytes: Buffer
  readonly err: string
}

/** Runs a command in this process, which starts faster than a process of its own. Run only one at a time. The command has no stdin. */
export async function runHere(words: readonly string[], env: Readonly<Record<string, string | undefined>>): Promise<Ran> {
  const chunks: Buffer[] = []
  let err = ''
  const stdout = vi.spyOn(process.stdout, 'write').mockImplementation(chunk => chunks.push(Buffer.from(chunk)) > 0)
  const stderr = vi.spyOn(process.stderr, 'write').mockImplementation(chunk => {
    err += String(chunk)
    return true
  })
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  try {
    const failedWith = await runProgram(brigadeProgram(), ['node', 'brigade', ...words])
    const bytes = Buffer.concat(chunks)
    return { code: failedWith ?? 0, out: bytes.toString(), bytes, err }
  } finally {
    stdout.mockRestore()
    stderr.mockRestore()
    vi.unstubAllEnvs()
  }
}
