import fc from 'fast-check'
import { expect, test } from 'vitest'
import { linkedKey } from '../../src/console/pages/memory/places.ts'
import { diffRows, foldedRows, unifiedLines } from '../../src/console/ui/compare/diff-rows.ts'
import { linesOf } from '../../src/console/ui/compare/lines.ts'
import { mergedText, mergeOf } from '../../src/console/ui/compare/merge.ts'
import { propertyRuns } from '../harness/property-runs.ts'

/** Texts of a few short lines, which often share lines. */
const texts = fc.array(fc.constantFrom('a', 'b', 'c', 'd', ''), { maxLength: 12 }).map(lines => lines.join('\n'))

test('the sides of a comparison are the two texts, in one column as beside each other, whatever they are', () => {
  fc.assert(
    fc.property(texts, texts, (before, after) => {
      const rows = diffRows(before, after)
      const side = (name: 'before' | 'after') => rows.flatMap(row => (row[name] === null ? [] : [row[name].parts.map(({ text }) => text).join('')]))
      expect([side('before'), side('after')]).toEqual([linesOf(before), linesOf(after)])
      const lines = unifiedLines(rows).filter(({ kind }) => kind !== 'added')
      expect(lines.map(({ parts }) => parts.map(({ text }) => text).join(''))).toEqual(linesOf(before))
      expect(foldedRows(rows).flatMap(block => block.rows)).toEqual(rows)
    }),
    { numRuns: propertyRuns(400) },
  )
})

test('a changed line marks the words that changed, and equal lines far from a change are folded', () => {
  const lines = Array.from({ length: 30 }, (_, place) => `This is line ${place}`)
  const rows = diffRows(lines.join('\n'), lines.with(15, 'This is line fifteen').join('\n'))
  expect(foldedRows(rows).map(block => [block.isFolded, block.rows.length])).toEqual([
    [true, 12],
    [false, 7],
    [true, 11],
  ])
  const changed = rows.find(({ kind }) => kind === 'changed')
  expect(changed?.before?.parts).toEqual([
    { text: 'This is line ', isChanged: false },
    { text: '15', isChanged: true },
  ])
  expect(changed?.after?.parts).toEqual([
    { text: 'This is line ', isChanged: false },
    { text: 'fifteen', isChanged: true },
  ])
})

test('texts that have nothing in common are compared within a second or two', () => {
  const of = (letter: string) => Array.from({ length: 40_000 }, (_, line) => `${letter} ${line}`).join('\n')
  const startedMs = performance.now()
  expect(diffRows(of('a'), of('b')).length).toBe(40_000)
  expect(performance.now() - startedMs).toBeLessThan(10_000)
})

test('a merge keeps the changes of the only side that made some, and a change that both made', () => {
  fc.assert(
    fc.property(texts, texts, (base, other) => {
      expect(mergedText(mergeOf(base, other, base), new Map())).toBe(other)
      expect(mergedText(mergeOf(base, base, other), new Map())).toBe(other)
      expect(mergedText(mergeOf(base, other, other), new Map())).toBe(other)
    }),
    { numRuns: propertyRuns(400) },
  )
})

test('a merge in which one side is always taken is the text of that side, outside of what only the other changed', () => {
  fc.assert(
    fc.property(texts, texts, texts, (base, theirs, yours) => {
      const pieces = mergeOf(base, theirs, yours)
      const of = (side: 'base' | 'theirs' | 'yours') => pieces.flatMap(piece => piece[side]).join('\n')
      expect([of('base'), of('theirs'), of('yours')]).toEqual([base, theirs, yours])
    }),
    { numRuns: propertyRuns(400) },
  )
})

test('a merge takes changes of different places, and a place that both changed waits for a choice', () => {
  const base = 'one\ntwo\nthree\nfour\nfive\nsix\n'
  const theirs = 'ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n'
  const yours = 'one\ntwo\n3\nfour\nfive\nSIX\n'
  const pieces = mergeOf(base, theirs, yours)
  expect(pieces.map(({ kind }) => kind)).toEqual(['theirs', 'same', 'yours', 'same', 'conflict', 'same'])
  const merged = (choice: 'theirs' | 'yours' | 'both') => mergedText(pieces, new Map([[4, choice]]))
  expect(merged('theirs')).toBe('ONE\ntwo\n3\nfour\nfive\nsix\nseven\n')
  expect(merged('yours')).toBe('ONE\ntwo\n3\nfour\nfive\nSIX\n')
  expect(merged('both')).toBe('ONE\ntwo\n3\nfour\nfive\nsix\nseven\nSIX\n')
})

test.each([
  ['agents/lead/notes.md', 'plan.md', 'agents/lead/plan.md'],
  ['agents/lead/notes.md', '../team%20notes.md#top', 'agents/team notes.md'],
  ['agents/50% done.md', './x.md', 'agents/x.md'],
  ['agents/lead/notes.md', '/org/records/a.md', 'org/records/a.md'],
  ['agents/lead/notes.md', '../../../../x.md', 'x.md'],
  ['agents/lead/notes.md', 'https://example.com', null],
  ['agents/lead/notes.md', '//example.com/x', null],
  ['agents/lead/notes.md', 'javascript:alert(1)', null],
  ['agents/lead/notes.md', '#part', null],
  ['agents/lead/notes.md', '%E0%A4', null],
])('in %s the link %s leads to %s', (from, address, key) => {
  expect(linkedKey(from, address)).toBe(key)
})
