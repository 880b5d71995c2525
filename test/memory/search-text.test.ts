import { describe, expect, test } from 'vitest'
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
