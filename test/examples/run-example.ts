/** The programs of examples/, run as their user runs them. */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from '../../scripts/build.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = join(root, 'examples')

/** Names of all of them, without the ending. One checks files without any gateway, and is tested with what it checks. */
export const exampleNames = readdirSync(folder)
  .filter(name => name.endsWith('.mjs') && name !== 'verify-attestation.mjs')
  .map(name => name.slice(0, -'.mjs'.length))

/** The text of a file of examples/. */
export const exampleText = (file: string): string => readFileSync(join(folder, file), 'utf8')

/** What a program came to. */
export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs one with these settings and nothing else of the environment but PATH. One that does not end is killed, and its code is null. */
export function runExample(name: string, settings: Readonly<Record<string, string>>): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const env = { PATH: process.env['PATH'] ?? '', ...settings }
    const child = spawn(process.execPath, [join('examples', `${name}.mjs`)], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: 25_000 })
    let [out, err] = ['', '']
    child.stdout.setEncoding('utf8').on('data', text => {
      out += text
    })
    child.stderr.setEncoding('utf8').on('data', text => {
      err += text
    })
    child.once('error', reject)
    child.once('close', code => resolve({ code, out, err }))
  })
}

/** Runs several, a few at a time. */
export async function runExamples(names: readonly string[], settings: Readonly<Record<string, string>>, atOnce = 3): Promise<Map<string, Ran>> {
  const ran = new Map<string, Ran>()
  const left = [...names]
  const worker = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) ran.set(name, await runExample(name, settings))
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return ran
}

/** `brigade-gateway/agents` is what was built of the toolkit: builds when a file of it is newer. Throws when the sources do not compile. */
export async function buildToolkit(): Promise<void> {
  const sources = join(root, 'src/agents/toolkit')
  const built = join(root, 'dist/agents/toolkit')
  const isStale = readdirSync(sources, { recursive: true, encoding: 'utf8' }).some(file => {
    if (!file.endsWith('.ts')) return false
    const result = join(built, file.replace(/\.ts$/, '.js'))
    return !existsSync(result) || statSync(result).mtimeMs < statSync(join(sources, file)).mtimeMs
  })
  if (isStale && !(await build())) throw new Error('src does not compile')
}
