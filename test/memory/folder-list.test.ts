/** Lists of folder stores: the order of keys, and what a folder with many files costs other requests. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { placeOf } from '../../src/memory/stores/folder-names.ts'
import { compareKeys } from '../../src/memory/stores/object-store.ts'
import { FolderStore } from '../../src/memory/stores/object-store-folder.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { startApp } from '../harness/app.ts'
import { propertyRuns } from '../harness/property-runs.ts'

/** Writes the files of a small object as a folder store does, but without waiting for the disk. */
function place(root: string, key: string): void {
  const { directories, stem } = placeOf(key)
  const directory = join(root, ...directories)
  mkdirSync(directory, { recursive: true })
  const data = `${stem}0.bin`
  writeFileSync(join(directory, data), 'x')
  writeFileSync(
    join(directory, `${stem}.json`),
    JSON.stringify({ key, etag: '"x"', sizeBytes: 1, modifiedMs: 1, metadata: {}, contentType: 'text/plain', data }),
  )
}

const segment = fc.oneof(
  fc.constantFrom('a', 'A', 'b', 'a.b', 'con', '.versions', 'ä', '~', '\u{1f600}', '\uffee', 'x'.repeat(160), 'x'.repeat(161)),
  fc.string({ minLength: 1 }),
)
const keys = fc.uniqueArray(
  fc
    .array(
      segment.map(text => text.replaceAll('/', '-')).filter(text => text.isWellFormed() && !text.includes('\0')),
      { minLength: 1, maxLength: 3 },
    )
    .map(segments => segments.join('/')),
  { maxLength: 25 },
)

test('pages of a folder store contain every key with the prefix once, in bytewise order', async () => {
  await fc.assert(
    fc.asyncProperty(keys, fc.integer({ min: 1, max: 7 }), fc.nat(), async (all, limit, seed) => {
      const root = await mkdtemp(join(tmpdir(), 'brigade-list-'))
      try {
        for (const key of all) place(root, key)
        const store = new FolderStore({ root, clock: systemClock, ids: systemIds })
        const prefix = seed % 3 === 0 ? '' : (all[seed % (all.length || 1)] ?? '').slice(0, seed % 4)
        if (!prefix.isWellFormed()) return
        const found: string[] = []
        for (let startAfter: string | undefined; ; ) {
          const page = await store.list({ prefix, limit, ...(startAfter === undefined ? {} : { startAfter }) })
          expect(page.objects.length).toBeLessThanOrEqual(limit)
          found.push(...page.objects.map(({ key }) => key))
          if (page.next === null) break
          startAfter = page.next
        }
        expect(found).toEqual(all.filter(key => key.startsWith(prefix)).sort(compareKeys))
      } finally {
        await rm(root, { recursive: true, force: true })
      }
    }),
    { numRuns: propertyRuns(200) },
  )
}, 120_000)

test('HARD-11 lists of a folder with 20,000 objects do not hold up other requests', async () => {
  const app = await startApp({ env: { FOLDER_STORE: 'true' } })
  try {
    expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })).status).toBe(200)
    const root = join(app.dataDir, 'memory', `org-${app.orgId}`)
    for (let at = 0; at < 20_000; at++) place(root, `org-${app.orgId}/agents/${100_000 + at}`)
    const delay = monitorEventLoopDelay({ resolution: 5 })
    delay.enable()
    const pages = await Promise.all(
      Array.from({ length: 4 }, () =>
        app.call('GET', `/v1/me/memory/list?prefix=agents/&limit=10&cursor=${Buffer.from('l:agents/110000').toString('base64url')}`),
      ),
    )
    delay.disable()
    for (const { json } of pages)
      expect(json.keys.map(({ key }: { key: string }) => key)).toEqual(Array.from({ length: 10 }, (_, at) => `agents/${110_001 + at}`))
    expect(delay.max / 1e6).toBeLessThan(250)
  } finally {
    await app.stop()
  }
}, 120_000)
