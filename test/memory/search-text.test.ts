import { describe, expect, test } from 'vitest'
import { checkText, firstPlace, piecesOf } from '../../src/memory/search/search-pieces.ts'
import { matcherOf } from '../../src/memory/search/search-text.ts'
import { toGatewayError } from '../../src/platform/errors.ts'

function outcomeOf(text: string): string {
  try {
    matcherOf({ text, isRegex: true, isCaseSensitive: false })
    return 'taken'
  } catch (error) {
    return toGatewayError(error).message
  }
}

describe('an expression that would block other work', () => {
  const large: readonly string[] = [
    '\\pL{0,999}'.repeat(40),
    `(?:${'.?'.repeat(200)}){1000}`,
    `((${'a?'.repeat(50)}){10}){100}`,
    `(?:${'\\p{L}?'.repeat(60)}[](]){1000}`,
    `(?:${'a?'.repeat(200)}[[:alpha:](]){1000}`,
    `(?:${'a?'.repeat(200)}\\Q(\\E){1000}`,
    `(?:${'a?'.repeat(200)}\\(){1000}`,
    `(?:${'a?'.repeat(200)}[\\](]){1000,}`,
  ]
  test.each(large)('an expression that is too large is refused before it is compiled: %s', text => {
    expect(outcomeOf(text)).toContain('too large')
  })

  const wide = '[B-\u{1e942}]'
  const ranges: readonly string[] = [
    wide.repeat(83),
    `(?i)${wide.repeat(5)}`,
    `[${'B-\u{1e942}'.repeat(5)}]`,
    '[^\\x{42}-\\x{1e942}]'.repeat(5),
    '[\\102-\u{1e942}]'.repeat(5),
    '[\\d--\u{1e942}]'.repeat(5),
    '[\\pL--\u{1e942}]'.repeat(5),
    '[[:alpha:]--\u{1e942}]'.repeat(5),
    '[\\\\x{1e900}-\u{1e942}]'.repeat(5),
    '[\u4e00-\u9fff]'.repeat(40),
  ]
  test.each(ranges)('an expression with too many characters in its ranges is refused before it is compiled: %s', text => {
    expect(outcomeOf(text)).toContain('more than 500000 characters')
  })

  const usual: readonly string[] = [
    'deploy(ed|ing) v\\d',
    '\\b\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}\\b',
    '[a-z0-9._-]{1,64}@[a-z0-9.-]{1,255}\\.[a-z]{2,24}',
    '(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}){1,4}',
    'TODO.{0,500}owner',
    'x{1000}',
    `(${'word|'.repeat(90)}x)`,
    '[]()]+',
    '\\Q((((\\E',
    '[\u4e00-\u9fff\u3040-\u30ff]{2,30}'.repeat(10),
    '[\\x{1f300}-\\x{1faff}\\x{2600}-\\x{27bf}]'.repeat(9),
    '[\\x{0}-\\x{10ffff}]'.repeat(20),
    '[^\\x00-\\x7f]+ [a-z\u00c0-\uffff]+',
    `\\Q${wide.repeat(40)}\\E`,
  ]
  test.each(usual)('a usual expression is accepted: %s', text => {
    expect(outcomeOf(text)).toBe('taken')
  })
})

describe('the pieces of an object', () => {
  const pieceChars = 512
  const isText = (bytes: Buffer): boolean => {
    const slices = checkText(bytes)
    for (let next = slices.next(); ; next = slices.next()) if (next.done === true) return next.value
  }
  const textsOf = (text: string) => [...piecesOf(Buffer.from(text), pieceChars, firstPlace)].map(({ line, text: found, isLineEnd }) => [line, found, isLineEnd])

  test('a search that ends in the first line decodes that line and not the whole object', () => {
    const bytes = Buffer.from(`x\n${'漢'.repeat(3_000_000)}`)
    let decoded = 0
    const counted = Object.assign(Buffer.from(bytes), {
      toString(encoding: BufferEncoding, start: number, end: number) {
        decoded += end - start
        return bytes.toString(encoding, start, end)
      },
    })
    const pieces = piecesOf(counted, pieceChars, firstPlace)
    expect(pieces.next().value).toMatchObject({ line: 1, text: 'x', isLineEnd: true, nextStart: 2 })
    expect(decoded).toBe(1)
    expect(pieces.next().value).toMatchObject({ line: 2, text: '漢'.repeat(pieceChars), isLineEnd: false, nextOffset: 448 * 3 })
    expect(decoded).toBeLessThan(3 * (pieceChars + 2))
  })

  test('lines end with LF or CRLF, and a byte order mark belongs to no line', () => {
    expect(textsOf('\ufeffa\r\n\nb\r')).toEqual([
      [1, 'a', true],
      [2, '', true],
      [3, 'b', true],
    ])
    expect(textsOf('')).toEqual([])
    expect(textsOf('x'.repeat(pieceChars))).toEqual([[1, 'x'.repeat(pieceChars), true]])
  })

  test.each(['x', 'é', '漢', '😀', 'x😀', '漢x😀é'])(
    'the pieces of a long line of %s overlap, have whole characters at their start, and a place continues exactly',
    letters => {
      const line = letters.repeat(2_000)
      const bytes = Buffer.from(`first\n${line}\nlast`)
      const all = [...piecesOf(bytes, pieceChars, firstPlace)]
      const parts = all.filter(piece => piece.line === 2)
      let at = 0
      for (const [index, part] of parts.entries()) {
        expect(part.text).toBe(line.slice(at, at + pieceChars))
        expect(part.isLineEnd).toBe(index === parts.length - 1)
        const rest = [...piecesOf(bytes, pieceChars, { line: 1, start: part.start, offset: part.nextOffset })]
        if (!part.isLineEnd) expect(rest.map(({ text }) => text)).toEqual(all.slice(2 + index).map(({ text }) => text))
        at = Buffer.from(line).subarray(0, part.nextOffset).toString().length
      }
      expect(all.at(-1)).toMatchObject({ line: 3, text: 'last', isLineEnd: true })
    },
  )

  test('an object is text when all of it is UTF-8, also where a slice of the check ends within a character', () => {
    const mib = 1024 * 1024
    for (const before of [0, 1, 2, 3])
      for (const letter of ['é', '漢', '😀']) {
        const good = Buffer.concat([Buffer.alloc(mib - before, 'x'), Buffer.from(letter.repeat(5)), Buffer.alloc(mib, 'y')])
        expect(isText(good)).toBe(true)
        const bad = Buffer.from(good)
        bad[mib - before] = 0x80
        expect(isText(bad)).toBe(false)
        expect(isText(good.subarray(0, mib - before + 1))).toBe(false)
      }
    expect([isText(Buffer.alloc(0)), isText(Buffer.alloc(20_000)), isText(Buffer.alloc(3 * mib, 0x80)), isText(Buffer.from([0xff]))]).toEqual([
      true,
      false,
      false,
      false,
    ])
  })
})
