import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BodyPieces } from '../../src/platform/loop/body-pieces.ts'
import { propertyRuns } from '../harness/property-runs.ts'

test('EDGE-09 a body is the same for every split into pieces', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(3), fc.nat(1100), fc.nat(5000)), { maxLength: 60 }), lengths => {
      const whole = Buffer.from(Array.from({ length: lengths.reduce((sum, length) => sum + length, 0) }, (_, index) => (index * 31) % 251))
      const pieces = new BodyPieces()
      let at = 0
      for (const length of lengths) {
        pieces.add(Buffer.from(whole.subarray(at, at + length)))
        at += length
      }
      expect(pieces.bytes).toBe(whole.length)
      expect(pieces.joined().equals(whole)).toBe(true)
    }),
    { numRuns: propertyRuns(200) },
  )
})

test('EDGE-09 a body of one piece is passed on without a copy', () => {
  const only = Buffer.from('{}')
  const pieces = new BodyPieces()
  pieces.add(only)
  expect(pieces.joined()).toBe(only)
  expect(new BodyPieces().joined()).toHaveLength(0)
})

test('EDGE-09 a body that arrives byte by byte uses little more memory than its length', () => {
  const pieces = new BodyPieces()
  const bytes = 2_000_000
  const before = process.memoryUsage()
  for (let count = 0; count < bytes; count++) pieces.add(Buffer.from([count % 251]))
  const after = process.memoryUsage()
  // With an object for each byte it would be some 370 MB. The measured value also contains memory that is not collected yet.
  expect(after.heapUsed - before.heapUsed + after.arrayBuffers - before.arrayBuffers).toBeLessThan(150_000_000)
  expect(pieces.joined()).toHaveLength(bytes)
})
