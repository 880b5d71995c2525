import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { collectGarbage } from '../../src/platform/loop/collect-garbage.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Returns the modules that a file imports when it is loaded. Types are not loaded, and `import()` loads later. */
function importsOf(file: string): string[] {
  const found = readFileSync(file, 'utf8').matchAll(/^(?:import|export)\s(?!type\b)[^;'"]*?from\s+'([^']+)'|^import\s+'([^']+)'/gm)
  return [...found].map(([, from, bare]) => from ?? bare ?? '')
}

/** Returns the packages that are loaded when the program starts, each with the files that import it. */
function packagesAtStart(): Map<string, string[]> {
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
  visit(main)
  expect(seen.size).toBeGreaterThan(500)
  return packages
}

describe('the memory of a start', () => {
  it('loads no package that few processes use', () => {
    const packages = packagesAtStart()
    expect([...packages.keys()]).toContain('undici')
    const rare = /^(?:@modelcontextprotocol\/|@aws-sdk\/|@smithy\/|@opentelemetry\/|nodemailer$|sharp$|music-metadata$)/
    expect([...packages].filter(([name]) => rare.test(name))).toEqual([])
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
