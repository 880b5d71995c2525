import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { collectGarbage } from '../../src/platform/loop/collect-garbage.ts'

const [main, gateway] = ['main', 'composition/serve'].map(name => fileURLToPath(new URL(`../../src/${name}.ts`, import.meta.url))) as [string, string]

/** Returns the modules that a file imports when it is loaded. Types are not loaded, and `import()` loads later. */
function importsOf(file: string): string[] {
  const found = readFileSync(file, 'utf8').matchAll(/^(?:import|export)\s(?!type\b)[^;'"]*?from\s+'([^']+)'|^import\s+'([^']+)'/gm)
  return [...found].map(([, from, bare]) => from ?? bare ?? '')
}

/** Returns the files that are loaded with a file, and the packages that they import, each with these files. */
function loadedWith(start: string): { readonly files: ReadonlySet<string>; readonly packages: ReadonlyMap<string, readonly string[]> } {
  const packages = new Map<string, string[]>()
  const seen = new Set<string>()
  const visit = (file: string): void => {
    if (seen.has(file)) return
    seen.add(file)
    for (const name of importsOf(file)) {
      if (name.startsWith('.')) visit(resolve(dirname(file), name))
      else if (!name.startsWith('node:')) packages.set(name, [...(packages.get(name) ?? []), file])
    }
  }
  visit(start)
  return { files: seen, packages }
}

describe('the memory of a start', () => {
  it('loads no package that few processes use', () => {
    const { files, packages } = loadedWith(gateway)
    expect(files.size).toBeGreaterThan(500)
    expect([...packages.keys()]).toContain('undici')
    const rare = /^(?:@modelcontextprotocol\/|@aws-sdk\/|@smithy\/|@opentelemetry\/|nodemailer$|sharp$|music-metadata$)/
    expect([...packages].filter(([name]) => rare.test(name))).toEqual([])
  })

  it('loads no gateway into the process that supervises workers', () => {
    expect([...loadedWith(main).files]).not.toContain(gateway)
    expect(loadedWith(main).files.size).toBeLessThan(60)
  })

  it('collects the garbage that a start leaves', async () => {
    let lists: number[][] | null = Array.from({ length: 200 }, () => Array.from({ length: 20_000 }, (_, index) => index / 3))
    const before = process.memoryUsage().heapUsed
    expect(lists.length).toBe(200)
    lists = null
    await collectGarbage()
    expect(before - process.memoryUsage().heapUsed).toBeGreaterThan(20_000_000)
  })
})
