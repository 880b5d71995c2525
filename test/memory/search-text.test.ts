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
  ]
  test.each(usual)('a usual expression is accepted: %s', text => {
    expect(outcomeOf(text)).toBe('taken')
  })
})
