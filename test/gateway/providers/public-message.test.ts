import { describe, expect, test } from 'vitest'
import { publicMessage } from '../../../src/gateway/providers/public-message.ts'
import { Secret } from '../../../src/platform/security/secret.ts'

const said = (message: string, content = '') =>
  publicMessage(JSON.stringify({ error: { message } }), new Secret('the-key-of-the-org'), { messages: [{ role: 'user', content }] })

describe('the public message of a provider’s error', () => {
  test('the public message is the provider’s sentence, without keys and without quotes from the request', () => {
    expect(said('The model is overloaded.', 'Why is the sky blue at noon?')).toBe('The model is overloaded.')
    expect(said("Cannot read 'the sky blue at noon' here", 'Why is the sky blue at noon?')).toBe('Cannot read […] here')
    expect(said('is the sky blue at noon?', 'Why is the sky blue at noon?')).toBe('[…]')
    // Short runs of common words do not count as a quote.
    expect(said('Why is that', 'Why is the sky blue at noon?')).toBe('Why is that')
    expect(said('wrong key the-key-of-the-org or sk-abcdefghij')).toBe('wrong key [secret] or [secret]')
  })

  test('the public message has no unpaired surrogate, from the provider or from the cut', () => {
    expect(said('bad \ud800 thing').isWellFormed()).toBe(true)
    expect(said(`${'x'.repeat(299)}😀 and more`).isWellFormed()).toBe(true)
  })

  test('the public message is made in bounded time, even for a long message about a large request', () => {
    const message = 'zz zy '.repeat(330)
    const startedMs = performance.now()
    expect(said(message, 'z'.repeat(30_000_000))).toBe('[…]')
    expect(said(message, `${'z'.repeat(200_000)} zz zy`).length).toBeGreaterThan(100)
    expect(performance.now() - startedMs).toBeLessThan(5000)
  })
})

test('a quote from a request of any format is removed', () => {
  const said = 'my name is Asha Rao of Pune'
  const text = JSON.stringify({ error: { message: `bad text: ${said}` } })
  const bodies = [
    { contents: [{ parts: [{ text: said }] }] },
    { systemInstruction: { parts: [{ text: said }] } },
    { content: { parts: [{ text: said }] } },
    { requests: [{ content: { parts: [{ text: said }] } }] },
    { query: said },
    { documents: [{ text: said }] },
  ]
  for (const body of bodies) expect(publicMessage(text, null, body), JSON.stringify(body)).not.toContain('Asha')
})
