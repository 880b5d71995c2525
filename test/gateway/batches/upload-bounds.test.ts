import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { UploadPlaces } from '../../../src/gateway/batches/files.ts'
import { CustomIds } from '../../../src/gateway/batches/lines/custom-ids.ts'

test('uploads have places by organisation, by founder and by process, and a refusal names the bound', async () => {
  const places = new UploadPlaces(orgId => `founder ${Math.floor(orgId / 10)}`)
  const ends: (() => void)[] = []
  const take = (orgId: number): Promise<void> => places.run(orgId, () => new Promise<void>(resolve => ends.push(resolve)))
  const taken: Promise<void>[] = []
  for (const orgId of [1, 1, 1, 1]) taken.push(take(orgId))
  await expect(take(1)).rejects.toMatchObject({ errorName: 'places_taken', message: expect.stringContaining('organisation already sends 4') })
  for (const orgId of [2, 2, 3, 3]) taken.push(take(orgId))
  await expect(take(4)).rejects.toMatchObject({ errorName: 'places_taken', message: expect.stringContaining('one founder already send 8') })
  for (const founder of [1, 2, 3]) for (const org of [0, 0, 0, 0, 1, 1, 1, 1]) taken.push(take(founder * 10 + org))
  await expect(take(99)).rejects.toMatchObject({ errorName: 'places_taken', message: expect.stringContaining('All organisations together already send 32') })
  for (const end of ends.splice(0)) end()
  await Promise.all(taken)
  const again = take(1)
  for (const end of ends) end()
  await again
})

test('the custom ids of a batch need little memory, however long they are, and a repeated one is found', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const idOf = (index: number): string => `${'é‐'.repeat(120)}${index}`
  const ids = new CustomIds()
  collect()
  const before = process.memoryUsage().heapUsed
  for (let index = 0; index < 20_000; index++) expect(ids.add(idOf(index))).toBe(true)
  collect()
  const grown = process.memoryUsage().heapUsed - before
  expect(ids.add(idOf(7))).toBe(false)
  // The ids themselves have 10 MB.
  expect(grown).toBeLessThan(4_000_000)
})
