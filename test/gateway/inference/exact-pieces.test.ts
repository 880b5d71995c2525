import fc from 'fast-check'
import { expect, test } from 'vitest'
import { exactPieceLength, restoredInPieces } from '../../../src/gateway/inference/exact-pieces.ts'
import { exactNumbersOf, parseExactJson } from '../../../src/gateway/wire/json/json-body.ts'
import { inferenceBounds } from '../../../src/gateway/wire/json/json-scan.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

/** Returns a body that is written again with replacements, and the object that restores its numbers. */
function writtenAnew(json: string) {
  const bytes = Buffer.from(json)
  const written = JSON.stringify(parseExactJson(bytes, inferenceBounds))
  const exact = exactNumbersOf(bytes)
  if (exact === undefined) throw new TypeError('the body has no such number')
  return { written, exact }
}

test('EDGE-07 numbers are restored piece by piece in separate turns, for any position of the end of a piece', async () => {
  const near = fc.record({ before: fc.nat(60), filling: fc.constantFrom('x', 'न', '😀', '1', 'e') })
  await fc.assert(
    fc.asyncProperty(near, async ({ before, filling }) => {
      const text = filling.repeat(Math.floor((exactPieceLength - before) / filling.length) - 8)
      const json = `{"a":"${text}","b":[9007199254740993,-0.1234567890123456789,1e400,"😀न"],"c":"${text}","d":12345678901234567890}`
      const { written, exact } = writtenAnew(json)
      for (const given of [written, Buffer.from(written)]) {
        let turns = 0
        const restored = await restoredInPieces(given, exact, async work => {
          turns++
          return work()
        })
        expect(restored.toString() === json).toBe(true)
        expect(turns).toBeGreaterThanOrEqual(2)
      }
    }),
    { numRuns: propertyRuns(40) },
  )
})

test('a run of millions of digits is divided into pieces, although it could be the inside of a number', async () => {
  const json = `{"a":"${'1'.repeat(10 * exactPieceLength)}","b":9007199254740993}`
  const { written, exact } = writtenAnew(json)
  let turns = 0
  const restored = await restoredInPieces(written, exact, async work => {
    turns++
    return work()
  })
  expect(restored.toString() === json).toBe(true)
  expect(turns).toBeGreaterThanOrEqual(10)
})
