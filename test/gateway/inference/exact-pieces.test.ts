import fc from 'fast-check'
import { expect, test } from 'vitest'
import { exactPieceLength, restoredInPieces } from '../../../src/gateway/inference/exact-pieces.ts'
import { exactNumbersOf, parseExactJson } from '../../../src/gateway/wire/json/json-body.ts'
import { inferenceBounds } from '../../../src/gateway/wire/json/json-scan.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

/** A body as it is written again, with stand-ins, and what puts its numbers back. */
function writtenAnew(json: string) {
  const bytes = Buffer.from(json)
  const written = JSON.stringify(parseExactJson(bytes, inferenceBounds))
  const exact = exactNumbersOf(bytes)
  if (exact === undefined) throw new TypeError('the body has no such number')
  return { written, exact }
}

test('EDGE-07 numbers are restored in turns of one piece each, with the end of a piece at any position', async () => {
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
        // A run of digits, and of what numbers are written with, is not cut.
        expect(turns).toBeGreaterThanOrEqual(filling === '1' || filling === 'e' ? 1 : 2)
      }
    }),
    { numRuns: propertyRuns(40) },
  )
})
