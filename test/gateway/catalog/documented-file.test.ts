import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { operatorFileJsonSchema } from '../../../src/gateway/catalog/loading/file-schema.ts'
import { loadCatalog } from '../../../src/gateway/catalog/loading/load.ts'
import { loadConfig } from '../../../src/platform/config.ts'

const page = readFileSync(new URL('../../../docs/guides/catalog.md', import.meta.url), 'utf8')

describe("the page of the operator's file", () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-documented-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('the example on the page loads unchanged, with the effects that the page describes', () => {
    const operatorFile = join(folder, 'brigade.config.json')
    writeFileSync(operatorFile, /```json\n([\s\S]*?)```/.exec(page)?.[1] ?? '')
    const { models, providers, rankings } = loadCatalog({ config: loadConfig({ GANGA_API_KEY: 'g', KAVERI_API_KEY: 'k' }), operatorFile })
    expect(['ganga', 'kaveri'].map(id => providers.get(id)?.configured)).toEqual([true, true])
    const thinker = models.get('ganga-thinker')
    expect(thinker).toMatchObject({ alwaysThinks: true, efforts: ['low', 'medium', 'high'], imageMaxEdge: 1568, reasoning: true })
    expect(thinker?.routes.map(({ dialect, upstreamModel, residency }) => [dialect, upstreamModel, residency])).toEqual([
      ['anthropic', 'thinker-2026', 'india'],
      ['openai-responses', 'ganga-thinker', 'india'],
    ])
    const rupee = 1_000_000n
    expect(thinker?.routes[0]?.price).toMatchObject({ cachedInputUinrPerMtok: 25n * rupee, cacheWriteUinrPerMtok: 312_500_000n })
    expect(thinker?.routes[1]?.price).toMatchObject({ cachedInputUinrPerMtok: null, cacheWriteUinrPerMtok: null })
    expect(models.get('kaveri-draw')).toMatchObject({ edits: true, routes: [{ imageStyle: 'openai-gpt-image', price: { uinrPerImage: 3n * rupee } }] })
    // ₹0.30 a minute is 0.5 paise a second.
    expect(models.get('kaveri-listen')?.routes[0]?.price.inputUinrPerMtok).toBe(5_000n * 1_000_000n)
    expect(models.get('kaveri-speak')).toMatchObject({ defaultVoice: 'meera', routes: [{ price: { inputUinrPerMtok: 900n * rupee } }] })
    expect(models.get('gpt-4o')).toMatchObject({ tools: true, routes: [{ price: { outputUinrPerMtok: 800n * rupee } }] })
    expect(rankings.capabilities.code).toEqual(['ganga-thinker', 'gpt-4o'])
  })

  test('the page names only existing fields, and every price field', () => {
    const known = JSON.stringify(operatorFileJsonSchema())
    const tables = page.slice(page.indexOf('## What the fields do'), page.indexOf('## Is it right?'))
    const named = [...tables.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell = '']) => [...cell.matchAll(/`([a-z_]+)`/g)].map(match => match[1] ?? ''))
    expect(named.length).toBeGreaterThan(15)
    for (const name of named) expect(known, name).toContain(`"${name}":`)
    for (const [, price = ''] of known.matchAll(/"(\w*inr_per_\w+)":/g)) expect(named).toContain(price)
  })
})
