import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/platform/security/secret.ts'
import { hashKey, makeSealer, maskSecret, newMasterKey, parseMasterKey } from '../../src/platform/security/secrets.ts'

describe('secrets', () => {
  const sealer = makeSealer(randomBytes(32))

  test('a sealed value can be opened only in its own row', () => {
    const sealed = sealer.seal('hunter2', 'memory_store:1')
    expect(sealed).not.toContain('hunter2')
    expect(sealer.open(sealed, 'memory_store:1')).toBe('hunter2')
    expect(() => sealer.open(sealed, 'memory_store:2')).toThrow()
  })

  test('a sealed value with any changed character cannot be opened', () => {
    const sealed = sealer.seal('hunter2', 'row')
    for (let i = 12; i < sealed.length; i++) {
      const changed = sealed.slice(0, i) + (sealed[i] === 'A' ? 'B' : 'A') + sealed.slice(i + 1)
      // The last character of base64url may contain bits that have no meaning.
      if (Buffer.from(changed.split('.')[2] ?? '', 'base64url').equals(Buffer.from(sealed.split('.')[2] ?? '', 'base64url'))) continue
      expect(() => sealer.open(changed, 'row')).toThrow()
    }
  })

  test('an older master key still opens its values, and an unknown key does not', () => {
    const [old, current] = [randomBytes(32), randomBytes(32)]
    const sealed = makeSealer(old).seal('value', 'row')
    expect(makeSealer(current, [old]).open(sealed, 'row')).toBe('value')
    expect(() => makeSealer(current).open(sealed, 'row')).toThrow('master key')
  })

  test('a master key is 32 bytes as base64 or hex, and any other text is refused', () => {
    expect(parseMasterKey(newMasterKey())).toHaveLength(32)
    expect(parseMasterKey(randomBytes(32).toString('hex'))).toHaveLength(32)
    expect(parseMasterKey('short')).toBeNull()
  })

  test('a printed Secret is hidden', () => {
    const secret = new Secret('sk-live')
    expect(`${secret} ${JSON.stringify({ secret })} ${inspect({ secret })}`).not.toContain('sk-live')
    expect(secret.reveal()).toBe('sk-live')
  })

  test('a masked credential shows the ends of a long one and nothing of a short one', () => {
    expect(maskSecret('AKIAIOSFODNN7EXAMPLE')).toBe('AKIA…MPLE')
    expect(maskSecret('short')).toBe('****')
    expect(hashKey('br-x')).toHaveLength(32)
  })
})
