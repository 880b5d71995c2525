import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { saveCredentials } from '../../src/cli/account/credentials.ts'
import { type ClientFlags, clientSettings, credentialOf } from '../../src/cli/client-settings.ts'
import { CommandError } from '../../src/cli/command-error.ts'

const kept = 'br-kept-by-login-0001'
const given = 'br-of-the-environment-1'

describe('the gateway and the credential of a command', () => {
  let home: string
  let env: Record<string, string>
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'brigade-home-'))
    env = { XDG_CONFIG_HOME: home }
    return () => rmSync(home, { recursive: true, force: true })
  })

  const login = (base_url: string): string => saveCredentials(join(home, 'brigade'), { base_url, key: kept })
  /** Returns the address, the key, and where the key was found. */
  const settled = (flags: ClientFlags = {}, more: Record<string, string> = {}): unknown[] => {
    const { baseUrl, credential, credentialFrom } = clientSettings(flags, { ...env, ...more })
    return [baseUrl, credential?.reveal() ?? null, credentialFrom]
  }
  const failure = (act: () => unknown): CommandError => {
    try {
      act()
    } catch (thrown) {
      if (thrown instanceof CommandError) return thrown
    }
    throw new Error('it did not fail as commands do')
  }

  test('flags come before the environment, the environment before the stored login; without any address, the gateway of this computer is used', () => {
    expect(settled()).toEqual(['http://127.0.0.1:8787', null, 'brigade login'])
    login('https://gw.example.com')
    expect(settled()).toEqual(['https://gw.example.com', kept, 'brigade login'])
    expect(settled({}, { BRIGADE_KEY: ` ${given}\n` })).toEqual(['https://gw.example.com', given, 'BRIGADE_KEY'])
    const inEnv = { BRIGADE: 'https://two.example.com/', BRIGADE_KEY: given }
    expect(settled({}, inEnv)).toEqual(['https://two.example.com', given, 'BRIGADE_KEY'])
    const keyFile = join(home, 'key.txt')
    writeFileSync(keyFile, 'br-of-the-file-00001\n')
    expect(settled({ baseUrl: 'http://three.example.com:81', keyFile }, inEnv)).toEqual([
      'http://three.example.com:81',
      'br-of-the-file-00001',
      `--key-file ${keyFile}`,
    ])
    expect(settled({}, { BRIGADE_KEY_FILE: keyFile })).toEqual(['https://gw.example.com', 'br-of-the-file-00001', 'BRIGADE_KEY_FILE'])
  })

  test('the key of brigade login is sent to the gateway that issued it, under every loopback name, and to no other gateway', () => {
    login('http://127.0.0.1:8787')
    for (const baseUrl of ['http://localhost:8787', 'http://[::1]:8787/', 'http://127.0.0.1:8787/v1']) expect(settled({ baseUrl })[1], baseUrl).toBe(kept)
    for (const baseUrl of ['http://127.0.0.1:8788', 'https://127.0.0.1:8787', 'http://127.0.0.1.example.com:8787', 'http://gw.example.com'])
      expect(settled({ baseUrl })[1], baseUrl).toBe(null)
    const refused = failure(() => credentialOf(clientSettings({ baseUrl: 'http://gw.example.com' }, env)))
    expect([refused.exitCode, refused.code]).toEqual([3, 'not_signed_in'])
    expect(refused.message).toContain('brigade login --base-url http://gw.example.com')
  })

  test('an address is accepted in the forms that people write', () => {
    for (const [typed, meant] of [
      ['https://gw.example.com/v1', 'https://gw.example.com'],
      ['https://gw.example.com/v1/', 'https://gw.example.com'],
      ['http://gw.example.com:8787/mcp', 'http://gw.example.com:8787'],
      ['https://example.com/gateway/', 'https://example.com/gateway'],
      ['HTTPS://GW.example.com', 'https://gw.example.com'],
    ])
      expect(settled({}, { BRIGADE: typed ?? '' })[0]).toBe(meant)
  })

  test('for an invalid address or key, the error is one line and does not contain the key', () => {
    const secret = 'br-secret-äöü-00001'
    const unreadable = join(home, 'folder')
    for (const [more, message] of [
      [{ BRIGADE: 'localhost:8787' }, 'such as http://localhost:8787, not'],
      [{ BRIGADE: 'gw.example.com' }, 'such as https://gw.example.com, not'],
      [{ BRIGADE: 'ftp://x' }, 'must be an http or https URL'],
      [{ BRIGADE: 'https://user:secret@gw.example.com' }, 'must not hold a user or password'],
      [{ BRIGADE_KEY: secret }, 'BRIGADE_KEY does not hold a key'],
      [{ BRIGADE_KEY: 'br-two lines\nof text' }, 'BRIGADE_KEY does not hold a key'],
      [{ BRIGADE_KEY_FILE: unreadable }, 'there is no such file'],
    ] as const) {
      const refused = failure(() => settled({}, more))
      expect(refused.message).toContain(message)
      expect(refused.message).not.toMatch(/secret|two lines/)
      expect(refused.exitCode).toBe(2)
    }
    expect(failure(() => settled({ keyFile: home })).message).toContain('it is a folder')
  })

  test('a credentials file that cannot be read counts as not signed in', () => {
    const path = login('http://127.0.0.1:8787')
    for (const text of ['', '{', '[]', 'null', '{"base_url":"nonsense","key":"x"}', '{"base_url":"http://127.0.0.1:8787"}']) {
      writeFileSync(path, text)
      expect(settled(), text).toEqual(['http://127.0.0.1:8787', null, 'brigade login'])
    }
  })
})
