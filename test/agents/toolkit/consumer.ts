/** A project that uses the toolkit as a package. The package has the files that npm would install, compiled from src. */
import { execFile, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const typescript = createRequire(import.meta.url).resolve('typescript/package.json')
const tsc = join(dirname(typescript), 'bin', 'tsc')
/** The packages that the examples import in addition to the toolkit. */
const packages = ['openai', '@anthropic-ai', 'ai', '@ai-sdk', '@langchain', '@openai', '@modelcontextprotocol', '@types', 'zod']

/** A folder with a project. */
export interface Consumer {
  readonly folder: string
  /** The folder of the installed package. */
  readonly packageFolder: string
  write(name: string, text: string): void
  /** Returns the errors of tsc for these files. The text is empty when there are none. */
  typeErrors(files: readonly string[], options: object): string
  /** Runs a program to its end and returns its output. Rejects when the program fails, or has not ended after `timeoutMs`. */
  run(file: string, env: Readonly<Record<string, string>>, timeoutMs?: number): Promise<string>
  remove(): void
}

/** Compiles the toolkit into a package. Throws when it does not compile. */
export function makeConsumer(): Consumer {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-consumer-'))
  const packageFolder = join(folder, 'node_modules', 'brigade-gateway')
  mkdirSync(packageFolder, { recursive: true })
  for (const name of packages) symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'junction')
  copyFileSync(join(root, 'package.json'), join(packageFolder, 'package.json'))
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)
  write('package.json', JSON.stringify({ type: 'module' }))
  const compile = (name: string, config: object) => {
    write(name, JSON.stringify(config))
    return spawnSync(process.execPath, [tsc, '-p', join(folder, name), '--pretty', 'false'], { encoding: 'utf8' }).stdout
  }
  const compilerOptions = { rootDir: join(root, 'src'), outDir: join(packageFolder, 'dist'), typeRoots: [join(root, 'node_modules/@types')] }
  const failure = compile('build.json', {
    extends: join(root, 'tsconfig.json'),
    files: [join(root, 'src/agents/toolkit/toolkit.ts')],
    include: [],
    compilerOptions,
  })
  if (failure !== '') throw new Error(failure)
  return {
    folder,
    packageFolder,
    write,
    typeErrors: (files, options) =>
      compile('tsconfig.json', { files, compilerOptions: { strict: true, noEmit: true, target: 'es2023', skipLibCheck: true, ...options } }),
    async run(file, env, timeoutMs = 20_000) {
      const options = { cwd: folder, timeout: timeoutMs, env: { PATH: process.env['PATH'] ?? '', ...env } }
      return (await promisify(execFile)(process.execPath, [join(folder, file)], options)).stdout
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
