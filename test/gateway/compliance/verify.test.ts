/** How anybody can check an attestation without the gateway: `brigade verify`, the program in examples/, and the functions that both use. */
import { execFile } from 'node:child_process'
import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkArgsOf } from '../../../src/cli/reports/attestation-args.ts'
import { canonicalBytes } from '../../../src/gateway/compliance/attestation/attestation.ts'
import { parseStrictJson } from '../../../src/gateway/compliance/attestation/strict-json.ts'
import { thumbprintOf } from '../../../src/gateway/compliance/attestation/thumbprint.ts'
import { verifyAttestation } from '../../../src/gateway/compliance/attestation/verify.ts'
import { runHere } from '../../cli/run-here.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { chat, home } from './calls.ts'

const program = fileURLToPath(new URL('../../../examples/verify-attestation.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'brigade-verify-'))
const written = (name: string, text: string | Buffer): string => {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

/** Runs the program of examples/ as a process that has only Node and two files. */
const runAlone = (...files: string[]): Promise<{ code: number; out: string; err: string }> =>
  new Promise(done =>
    execFile(process.execPath, [program, ...files], { cwd: folder, env: {} }, (error, out, err) => done({ code: Number(error?.code ?? 0), out, err })),
  )

describe('attestations that other people check', () => {
  let app: TestApp
  let text: string
  let keys: string
  let keysFile: string
  beforeAll(async () => {
    app = await startApp()
    await chat(app, home(app), 'indus')
    await chat(app, home(app), 'alpha')
    text = (await app.call('GET', '/v1/org/residency/attestation')).text
    keys = (await app.call('GET', '/.well-known/attestation-keys.json', undefined, { token: null })).text
    keysFile = written('keys.json', keys)
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true })
    await app.stop()
  })
  const isValid = (changed: string): boolean => verifyAttestation(changed, JSON.parse(keys)).isValid
  const env = { BRIGADE: '', BRIGADE_KEY: undefined, XDG_CONFIG_HOME: folder }

  test('RCPT-01 brigade verify and a separate program check an attestation offline and show what it states', async () => {
    const file = written('attestation.json', text)
    const ran = await runHere(['verify', file, '--keys', keysFile], { ...env, BRIGADE: 'http://127.0.0.1:9' })
    expect(ran).toMatchObject({ code: 0, err: '' })
    const { payload, ed25519 } = JSON.parse(text)
    expect(ran.out).toContain(`valid: signed with the key ${ed25519.key_id}, of ${keysFile}`)
    expect(ran.out).toContain(`of: organisation ${app.orgId} at ${app.baseUrl}`)
    expect(ran.out).toContain('in India: 1 of 2 requests (50.00 %)')
    expect(ran.out).toContain('evidence: 2 calls, all there were')
    expect(JSON.parse((await runHere(['verify', file, '--keys', keysFile, '--json'], env)).out)).toEqual({
      valid: true,
      key_id: ed25519.key_id,
      keys_from: keysFile,
      payload,
    })
    expect(await runAlone(file, keysFile)).toMatchObject({ code: 0, err: '', out: expect.stringContaining('in India: 1 of 2 requests (50 %)') })
    // The same attestation, written by another program with other spaces and another order of names.
    const anew = written('anew.json', JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).reverse()), null, 2))
    expect((await runHere(['verify', anew, '--keys', keysFile], env)).code).toBe(0)
    expect((await runAlone(anew, keysFile)).code).toBe(0)
    const report = written('report.md', (await app.call('GET', '/v1/org/residency/attestation?format=report')).text)
    expect((await runHere(['verify', report, '--keys', keysFile], env)).code).toBe(0)
  })

  test('a report whose text does not match its signed JSON is refused by every command', async () => {
    const report = (await app.call('GET', '/v1/org/residency/attestation?format=report')).text
    expect(isValid(report.replaceAll('\n', '\r\n'))).toBe(true)
    const json = report.slice(report.indexOf('```json'))
    for (const changed of [
      report.replace('| in India | 1 | 50.00 % |', '| in India | 2 | 100.00 % |'),
      report.replace('## Evidence', 'Everything stayed in India.\n\n## Evidence'),
      `${report}\n${json}`,
      `# All is well\n\n${json}`,
    ]) {
      expect(changed).not.toBe(report)
      const verdict = verifyAttestation(changed, JSON.parse(keys))
      expect(verdict).toMatchObject({ isValid: false, why: expect.stringContaining('Only that JSON is signed') })
      expect(() => checkArgsOf(changed)).toThrow('Only that JSON is signed')
    }
    expect(isValid(json.split('\n')[1] ?? '')).toBe(true)
  })

  test('without --keys, the keys come from the configured gateway and never from the address in the attestation', async () => {
    const file = written('attestation.json', text)
    const ran = await runHere(['verify', file], { ...env, BRIGADE: app.baseUrl })
    expect(ran).toMatchObject({ code: 0, out: expect.stringContaining(`of ${app.baseUrl}/.well-known/attestation-keys.json`) })
    expect((await runHere(['verify', file, '--keys', `${app.baseUrl}/.well-known/attestation-keys.json`], env)).code).toBe(0)
    // A forger changed the payload and the address, and signed with another key.
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const { payload, ed25519, ...rest } = JSON.parse(text)
    payload.summary.india_pct = 100
    const signature = sign(null, canonicalBytes(payload), privateKey).toString('base64url')
    const forged = (keyId: string) =>
      JSON.stringify({ ...rest, payload, ed25519: { ...ed25519, key_id: keyId, signature, jwks_url: 'http://evil.test/keys.json' } })
    for (const keyId of [ed25519.key_id, 'theirs']) {
      const refused = await runHere(['verify', written('forged.json', forged(keyId))], { ...env, BRIGADE: app.baseUrl })
      expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringContaining('not valid') })
      expect((await runAlone(written('forged.json', forged(keyId)), keysFile)).code).toBe(1)
    }
    // The forger's key under the id of the gateway's key, in the key file of the person who checks.
    const { x = '' } = publicKey.export({ format: 'jwk' })
    const theirs = (kid: string) => ({ keys: [{ kty: 'OKP', crv: 'Ed25519', x, kid }] })
    expect(verifyAttestation(forged(ed25519.key_id), theirs(ed25519.key_id))).toMatchObject({
      isValid: false,
      why: expect.stringContaining('somebody has changed it'),
    })
    expect((await runAlone(written('forged.json', forged(ed25519.key_id)), written('theirs.json', JSON.stringify(theirs(ed25519.key_id))))).code).toBe(1)
    expect(verifyAttestation(forged(thumbprintOf(x)), theirs(thumbprintOf(x))).isValid).toBe(true)
  })

  test('ATT-05 RCPT-01 a change of any byte of the payload or its signature makes the attestation invalid', async () => {
    expect(isValid(text)).toBe(true)
    const bytes = Buffer.from(text)
    const from = text.indexOf('"payload":') + '"payload":'.length
    const until = text.indexOf(',"alg":')
    const signature = JSON.parse(text).ed25519.signature as string
    const at = text.indexOf(signature)
    const places = [...Array.from({ length: until - from }, (_, index) => from + index), ...Array.from({ length: signature.length }, (_, index) => at + index)]
    for (const place of places)
      for (const flip of [1, 32, 64]) {
        const changed = Buffer.from(bytes)
        changed[place] = (changed[place] ?? 0) ^ flip
        expect(isValid(changed.toString()), changed.toString().slice(place - 20, place + 20)).toBe(false)
      }
  })

  test('a change of the value, name, order or length of any field makes the attestation invalid', () => {
    const { payload, ...rest } = JSON.parse(text)
    const changes: unknown[] = []
    const walk = (value: unknown, put: (changed: unknown) => unknown): void => {
      for (const other of [null, 0, -1, '', 'x', true, [], {}]) if (JSON.stringify(other) !== JSON.stringify(value)) changes.push(put(other))
      if (Array.isArray(value)) {
        changes.push(put([...value, value[0]]), put(value.slice(1)), put([...value].reverse()))
        for (const [index, item] of value.entries()) walk(item, changed => put(value.with(index, changed)))
      } else if (typeof value === 'object' && value !== null) {
        changes.push(put({ ...value, more: 1 }), put(JSON.parse(`{"__proto__":1,${JSON.stringify(value).slice(1)}`)))
        for (const [name, member] of Object.entries(value)) {
          walk(member, changed => put({ ...value, [name]: changed }))
          const { [name]: _gone, ...without } = value as Record<string, unknown>
          changes.push(put(without), put({ ...without, [`${name} `]: member }))
        }
      }
    }
    walk(payload, changed => changed)
    expect(changes.length).toBeGreaterThan(200)
    for (const changed of changes) expect(isValid(JSON.stringify({ payload: changed, ...rest })), JSON.stringify(changed).slice(0, 200)).toBe(false)
  })

  test('both programs refuse a text with two meanings: a name that occurs twice, a number that no double can hold, bytes that are not UTF-8', async () => {
    const total = /"total":(\d+)/
    const texts = [
      text.replace(total, '"total":9,"total":$1'),
      text.replace(total, '"total":$1.00000000000000000000001'),
      text.replace('"payload":', '"payload":{"summary":{"total":9}},"payload":'),
      text.replace('{"payload"', '{"__proto__":{"payload":{}},"payload2"'),
      // Some readers treat these names as a name that they know, because they ignore case, cut a name at a zero character, or fold letters.
      text.replace('{"payload"', '{"Payload":{"summary":{"total":9}},"payload"'),
      text.replace('{"payload"', '{"payload\\u0000":{},"payload"'),
      text.replace(total, '"tota\u017f":9,"total":$1'),
      // Members beside the payload, which no signature covers.
      text.replace('{"payload"', '{"summary":{"india_pct":100},"payload"'),
      text.replace('"jwks_url"', '"verified":true,"jwks_url"'),
      text.slice(0, -1),
      `${text}{}`,
      '',
      'null',
      '[]',
      '{}',
      '{"payload":{},"ed25519":null}',
      '['.repeat(100_000),
    ]
    for (const changed of texts) expect(isValid(changed), changed.slice(0, 60)).toBe(false)
    const ran = await Promise.all(
      [texts[0], texts[2], texts[4], texts[7], texts[8]].map((changed = '', at) => runAlone(written(`two-${at}.json`, changed), keysFile)),
    )
    expect(ran.map(({ code, err }) => [code, err.startsWith('not valid')])).toEqual(Array(5).fill([1, true]))
    const bad = Buffer.from(text)
    bad[text.indexOf('indus')] = 0xff
    expect((await runAlone(written('bad.json', bad), keysFile)).code).toBe(1)
    expect((await runHere(['verify', written('bad.json', bad), '--keys', keysFile], env)).code).toBe(2)
    for (const set of [null, [], {}, { keys: {} }, { keys: [null, 1, {}] }, { keys: [{ ...JSON.parse(keys).keys[0], x: 'AAAA' }] }])
      expect(verifyAttestation(text, set).isValid).toBe(false)
  })

  test('when a file or key set cannot be read or fetched, the error says what to do', async () => {
    const file = written('attestation.json', text)
    for (const [words, code, says] of [
      [['verify', join(folder, 'none.json'), '--keys', keysFile], 2, 'there is no such file'],
      [['verify', file, '--keys', join(folder, 'none.json')], 2, 'there is no such file'],
      [['verify', file, '--keys', written('no.json', 'no')], 1, 'does not hold a key set'],
      [['verify', file, '--keys', 'http://127.0.0.1:9/keys.json'], 1, 'give a kept file'],
      [['verify', file, '--base-url', 'http://127.0.0.1:9'], 1, 'cannot be reached'],
      [['verify'], 2, 'name the file of an attestation, or --tools'],
    ] as const) {
      const ran = await runHere(words, env)
      expect([ran.code, ran.err]).toEqual([code, expect.stringContaining(says)])
    }
    const said = await runHere(['verify', written('changed.json', text.replace('"total":2', '"total":3')), '--keys', keysFile, '--json'], env)
    expect([said.code, JSON.parse(said.err)]).toEqual([
      1,
      { error: { message: expect.any(String), code: 'not_valid', status: null }, valid: false, why: expect.any(String), keys_from: keysFile },
    ])
    expect(await runAlone()).toMatchObject({ code: 1, err: expect.stringContaining('usage') })
  })
})

test('a number is accepted in any spelling if a double holds it exactly', () => {
  for (const same of ['1', '1.0', '10e-1', '0.1', '66.67', '1E+2', '0', '-0.5', '0.0', '1e21', '5e-324', '123456789012345680000'])
    expect(parseStrictJson(`{"n":${same}}`)).toEqual({ n: Number(same) })
  for (const other of ['1.00000000000000001', '9007199254740993', '1e400', '0.1000000000000000055', '-1e-400'])
    expect(() => parseStrictJson(`[${other}]`), other).toThrow('more exact')
})

test('every JSON value is read as JSON.parse reads it, but an object with a repeated name is refused', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 3 }), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      expect(parseStrictJson(text)).toEqual(JSON.parse(text))
    }),
  )
  fc.assert(
    fc.property(fc.string(), fc.jsonValue(), (name, value) => {
      const member = `${JSON.stringify(name)}:${JSON.stringify(value)}`
      expect(() => parseStrictJson(`[{${member},"${'other'}${name.length}":1,${member}}]`)).toThrow('occurs twice')
    }),
  )
  expect(() => parseStrictJson('{"a":1,"\\u0061":2}')).toThrow('occurs twice')
  expect(parseStrictJson('[{"a":1},{"a":2},{"b":{"a":"a:a"}}]')).toEqual([{ a: 1 }, { a: 2 }, { b: { a: 'a:a' } }])
})
