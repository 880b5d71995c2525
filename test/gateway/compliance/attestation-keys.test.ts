import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AttestationKeys } from '../../../src/gateway/compliance/attestation/attestation-keys.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { type Db, statement } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { makeSealer } from '../../../src/platform/security/secrets.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../harness/database.ts'

const listKeys = statement<[], { keyId: string; isCurrent: boolean; privateKey: string; hmacKey: string }>(
  'test.list_attestation_keys',
  `select key_id as "keyId", retired_at is null as "isCurrent", sealed_private_key as "privateKey", sealed_hmac_key as "hmacKey" from attestation_keys order by created_at`,
)
const swapSecrets = statement<[]>(
  'test.swap_attestation_secrets',
  'update attestation_keys set sealed_private_key = sealed_hmac_key, sealed_hmac_key = sealed_private_key where retired_at is null',
)
const bytes = Buffer.from('{"a":1}')

describe('keys of attestations in several processes', () => {
  let database: TestDatabase
  let processes: AttestationKeys[]
  const clock = systemClock
  const masterKey = randomBytes(32)
  const keysOf = (db: Db, key = masterKey): AttestationKeys =>
    new AttestationKeys({
      db,
      clock,
      ids: systemIds,
      sealer: makeSealer(key),
      controlLog: new ControlLog({ db, clock, log: silentLog, pollMs: 1000 }),
      cacheTtlMs: 30_000,
    })
  beforeAll(async () => {
    database = await testDatabase()
    const handles = onPostgres ? await Promise.all([database.open(), database.open(), database.open()]) : [database.db, database.db, database.db]
    processes = handles.map(db => keysOf(db))
  })
  afterAll(() => database.dispose())
  const signedBy = async (): Promise<string[]> => (await Promise.all(processes.map(keys => keys.sign(bytes)))).map(({ ed25519 }) => ed25519.keyId)

  test('concurrent first uses create one key, and its private part is stored sealed', async () => {
    const [signatures, published] = await Promise.all([
      Promise.all(processes.map(keys => keys.sign(bytes))),
      Promise.all(processes.map(keys => keys.published())),
    ])
    expect(new Set(signatures.map(made => JSON.stringify(made))).size).toBe(1)
    expect(new Set(published.map(keys => JSON.stringify(keys))).size).toBe(1)
    const rows = await database.db.many(listKeys)
    expect(rows).toHaveLength(1)
    for (const { privateKey, hmacKey } of rows) expect([privateKey, hmacKey]).toEqual([expect.stringMatching(/^v1\./), expect.stringMatching(/^v1\./)])
  })

  test('after concurrent rotations, every process signs with the same current key, and old signatures stay valid', async () => {
    const before = await processes[0]?.sign(bytes)
    const made = await Promise.all(processes.map(keys => keys.rotate()))
    const ids = await signedBy()
    expect(new Set(ids).size).toBe(1)
    expect(made.map(({ keyId }) => keyId)).toContain(ids[0])
    expect((await database.db.many(listKeys)).filter(row => row.isCurrent)).toHaveLength(1)
    const { keyId = '', signature = '' } = before?.hmac ?? {}
    expect(await Promise.all(processes.map(keys => keys.checkHmac(keyId, signature, bytes)))).toEqual([true, true, true])
    expect(await processes[0]?.checkHmac(keyId, signature, Buffer.from('{"a":2}'))).toBe(false)
    expect(await processes[0]?.checkHmac('unknown', signature, bytes)).toBeNull()
  })

  test('with another master key, or with a sealed value in the wrong place, nothing is signed; a rotation repairs this', async () => {
    const stranger = keysOf(database.db, randomBytes(32))
    expect(await stranger.isOpened()).toBe(false)
    await expect(stranger.sign(bytes)).rejects.toMatchObject({ errorName: 'internal_error' })
    expect(await processes[0]?.isOpened()).toBe(true)
    await database.db.exec(swapSecrets)
    expect(await processes[0]?.isOpened()).toBe(false)
    await expect(processes[0]?.sign(bytes)).rejects.toMatchObject({ errorName: 'internal_error' })
    await stranger.rotate()
    expect((await stranger.sign(bytes)).ed25519.signature).toMatch(/^[\w-]{86}$/)
  })
})
